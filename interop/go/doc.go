// Package interop tests Leveret with amqp091-go, the AMQP 0-9-1 client RabbitMQ's team maintains for
// Go. It holds nothing but tests.
package interop
