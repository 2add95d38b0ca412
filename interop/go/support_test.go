package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// testLimit cuts a test's socket, which fails whatever call it is stuck in.
	testLimit = 15 * time.Second
	// waitLimit is how long something that must arrive may take.
	waitLimit = 5 * time.Second
	// quietTime is how long nothing must arrive where nothing should.
	quietTime = 200 * time.Millisecond
)

func env(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

func dial(t *testing.T, user, password string) (*amqp.Connection, error) {
	address := net.JoinHostPort(env("AMQP_HOST", "127.0.0.1"), env("AMQP_PORT", "5672"))
	config := amqp.Config{Vhost: "/", Dial: func(network, addr string) (net.Conn, error) {
		socket, err := net.DialTimeout(network, addr, waitLimit)
		if err == nil {
			watchdog := time.AfterFunc(testLimit, func() { _ = socket.Close() })
			t.Cleanup(func() { watchdog.Stop() })
		}
		return socket, err
	}}
	return amqp.DialConfig(fmt.Sprintf("amqp://%s:%s@%s", user, password, address), config)
}

func connect(t *testing.T) *amqp.Connection {
	t.Helper()
	connection, err := dial(t, "guest", "guest")
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() {
		if err := connection.Close(); err != nil {
			t.Errorf("close connection: %v", err)
		}
	})
	return connection
}

func openChannel(t *testing.T, connection *amqp.Connection) *amqp.Channel {
	t.Helper()
	channel, err := connection.Channel()
	must(t, err)
	return channel
}

func uniqueName(t *testing.T) string {
	return "interop.go." + t.Name() + "." + strconv.FormatInt(time.Now().UnixNano(), 36)
}

// declareQueue declares an exclusive queue, which goes with its connection.
func declareQueue(t *testing.T, channel *amqp.Channel) string {
	t.Helper()
	queue, err := channel.QueueDeclare(uniqueName(t), false, false, true, false, nil)
	must(t, err)
	return queue.Name
}

// declareExchange declares an exchange that is deleted when the test ends.
func declareExchange(t *testing.T, connection *amqp.Connection, kind string) string {
	t.Helper()
	name := uniqueName(t) + "." + kind
	must(t, openChannel(t, connection).ExchangeDeclare(name, kind, false, false, false, false, nil))
	t.Cleanup(func() { must(t, openChannel(t, connection).ExchangeDelete(name, false, false)) })
	return name
}

func publish(t *testing.T, channel *amqp.Channel, exchange, key string, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		send(t, channel, exchange, key, amqp.Publishing{Body: []byte(body)})
	}
}

func send(t *testing.T, channel *amqp.Channel, exchange, key string, message amqp.Publishing) {
	t.Helper()
	must(t, channel.PublishWithContext(context.Background(), exchange, key, false, false, message))
}

func consume(t *testing.T, channel *amqp.Channel, queue string, autoAck bool) <-chan amqp.Delivery {
	t.Helper()
	deliveries, err := channel.Consume(queue, "", autoAck, false, false, false, nil)
	must(t, err)
	return deliveries
}

func get(t *testing.T, channel *amqp.Channel, queue string, autoAck bool) amqp.Delivery {
	t.Helper()
	message, ok, err := channel.Get(queue, autoAck)
	must(t, err)
	if !ok {
		t.Fatalf("queue %s is empty", queue)
	}
	return message
}

// readyCount counts the messages ready for delivery, not those delivered and unacknowledged.
func readyCount(t *testing.T, channel *amqp.Channel, queue string) int {
	t.Helper()
	state, err := channel.QueueDeclarePassive(queue, false, false, true, false, nil)
	must(t, err)
	return state.Messages
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case value, open := <-from:
		if !open {
			t.Fatal("closed while a value was expected")
		}
		return value
	case <-time.After(waitLimit):
		t.Fatalf("nothing arrived within %v", waitLimit)
	}
	panic("unreachable")
}

func take(t *testing.T, from <-chan amqp.Delivery, count int) []amqp.Delivery {
	t.Helper()
	deliveries := make([]amqp.Delivery, count)
	for i := range deliveries {
		deliveries[i] = receive(t, from)
	}
	return deliveries
}

func staysEmpty(t *testing.T, deliveries <-chan amqp.Delivery) {
	t.Helper()
	select {
	case delivery, open := <-deliveries:
		t.Fatalf("unexpected delivery %q (channel open: %v)", delivery.Body, open)
	case <-time.After(quietTime):
	}
}

// numbered gives m0, m1, …: bodies whose order can be checked.
func numbered(count int) []string {
	bodies := make([]string, count)
	for i := range bodies {
		bodies[i] = "m" + strconv.Itoa(i)
	}
	return bodies
}

func bodies(deliveries []amqp.Delivery) []string {
	texts := make([]string, len(deliveries))
	for i, delivery := range deliveries {
		texts[i] = string(delivery.Body)
	}
	return texts
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expectCode(t *testing.T, err error, code int) {
	t.Helper()
	var amqpError *amqp.Error
	if !errors.As(err, &amqpError) || amqpError.Code != code {
		t.Fatalf("expected AMQP error %d, got %v", code, err)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

func equalSlices[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	equal(t, what+" (length)", len(got), len(want))
	for i := range want {
		equal(t, fmt.Sprintf("%s (at %d)", what, i), got[i], want[i])
	}
}
