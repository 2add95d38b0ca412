package interop

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestServerAdvertisesTheExtensionsClientsSwitchOn(t *testing.T) {
	properties := connect(t).Properties
	capabilities, ok := properties["capabilities"].(amqp.Table)
	if !ok {
		t.Fatalf("no capabilities table among the server properties: %v", properties)
	}
	for _, name := range []string{
		"publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
		"connection.blocked", "consumer_priorities", "authentication_failure_close",
		"per_consumer_qos", "direct_reply_to",
	} {
		equal(t, name, capabilities[name], any(true))
	}
}

// This client does not announce authentication_failure_close, so the broker may only drop the socket;
// the client then reports 403 by itself.
func TestWrongPasswordIsRefusedWith403(t *testing.T) {
	_, err := dial(t, "guest", "wrong")
	expectCode(t, err, amqp.AccessRefused)
}

func TestDeclarationsWithoutWaitingTakeEffectInOrder(t *testing.T) {
	connection := connect(t)
	channel := openChannel(t, connection)
	queue, exchange := uniqueName(t), uniqueName(t)

	must(t, channel.ExchangeDeclare(exchange, "direct", false, true, false, true, nil))
	_, err := channel.QueueDeclare(queue, false, false, true, true, nil)
	must(t, err)
	must(t, channel.QueueBind(queue, "key", exchange, true, nil))
	deliveries, err := channel.Consume(queue, "no-wait", true, false, false, true, nil)
	must(t, err)

	publish(t, channel, exchange, "key", "delivered")
	equal(t, "body", string(receive(t, deliveries).Body), "delivered")

	must(t, channel.Cancel("no-wait", true))
	publish(t, channel, exchange, "key", "left in the queue")
	equal(t, "body", string(get(t, channel, queue, true).Body), "left in the queue")

	_, err = channel.QueueDelete(queue, false, false, true)
	must(t, err)
	_, err = channel.QueueDeclarePassive(queue, false, false, true, false, nil)
	expectCode(t, err, amqp.NotFound)
}
