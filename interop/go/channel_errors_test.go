package interop

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestPassiveDeclareOfAMissingQueueClosesTheChannelWith404(t *testing.T) {
	connection := connect(t)
	bystander := openChannel(t, connection)
	closesChannel(t, connection, 404, "NOT_FOUND - no queue '", func(channel *amqp.Channel) {
		_, err := channel.QueueDeclarePassive(uniqueName(t), false, false, true, false, nil)
		expectCode(t, err, 404)
	})
	usable(t, bystander)
}

func TestRedeclaringAQueueWithOtherArgumentsClosesTheChannelWith406(t *testing.T) {
	connection := connect(t)
	owner := openChannel(t, connection)
	queue := declareQueue(t, owner)
	wanted := "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl'"
	closesChannel(t, connection, 406, wanted, func(channel *amqp.Channel) {
		arguments := amqp.Table{amqp.QueueMessageTTLArg: int32(60_000)}
		_, err := channel.QueueDeclare(queue, false, false, true, false, arguments)
		expectCode(t, err, 406)
	})
	usable(t, owner)
}

func TestPublishingToAMissingExchangeClosesTheChannelWith404(t *testing.T) {
	connection := connect(t)
	closesChannel(t, connection, 404, "NOT_FOUND - no exchange '", func(channel *amqp.Channel) {
		publish(t, channel, uniqueName(t), "key", "body")
	})
}

func TestAcknowledgingAnUnknownDeliveryTagClosesTheChannelWith406(t *testing.T) {
	connection := connect(t)
	wanted := "PRECONDITION_FAILED - unknown delivery tag 77"
	closesChannel(t, connection, 406, wanted, func(channel *amqp.Channel) {
		must(t, channel.Ack(77, false))
	})
}

// closesChannel checks the error that action closes a channel with, then that the connection still
// gives a working channel.
func closesChannel(
	t *testing.T, connection *amqp.Connection, code int, text string, action func(*amqp.Channel),
) {
	t.Helper()
	channel := openChannel(t, connection)
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	action(channel)

	reason := receive(t, closed)
	equal(t, "reply code", reason.Code, code)
	equal(t, "sent by the server", reason.Server, true)
	if !strings.HasPrefix(reason.Reason, text) {
		t.Fatalf("reply text %q does not start with %q", reason.Reason, text)
	}
	equal(t, "channel closed", channel.IsClosed(), true)
	usable(t, openChannel(t, connection))
}

func usable(t *testing.T, channel *amqp.Channel) {
	t.Helper()
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, "still here")
	equal(t, "body", string(get(t, channel, queue, true).Body), "still here")
}
