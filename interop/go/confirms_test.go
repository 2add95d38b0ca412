package interop

import (
	"context"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestSinglePublishIsConfirmed(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	must(t, channel.Confirm(false))
	confirmed(t, channel, queue, false, "only")
	equal(t, "messages", readyCount(t, channel, queue), 1)
}

func TestThousandOutstandingPublishesAreConfirmedInOrder(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	must(t, channel.Confirm(false))
	// The client sorts confirms by tag and splits `multiple` ones before it hands them on.
	confirms := channel.NotifyPublish(make(chan amqp.Confirmation, 1000))
	publish(t, channel, "", queue, numbered(1000)...)
	for tag := uint64(1); tag <= 1000; tag++ {
		equal(t, "confirm", receive(t, confirms), amqp.Confirmation{DeliveryTag: tag, Ack: true})
	}
	equal(t, "messages", readyCount(t, channel, queue), 1000)
}

func TestUnroutableMandatoryMessageIsReturnedBeforeItsConfirm(t *testing.T) {
	channel := openChannel(t, connect(t))
	must(t, channel.Confirm(false))
	returns := channel.NotifyReturn(make(chan amqp.Return, 1))
	nowhere := uniqueName(t)
	confirmed(t, channel, nowhere, true, "lost")

	// The client handles frames one by one, so a return sent before the confirm is already here.
	select {
	case returned := <-returns:
		equal(t, "reply code", returned.ReplyCode, amqp.NoRoute)
		equal(t, "reply text", returned.ReplyText, "NO_ROUTE")
		equal(t, "exchange", returned.Exchange, "")
		equal(t, "routing key", returned.RoutingKey, nowhere)
		equal(t, "body", string(returned.Body), "lost")
	default:
		t.Fatal("confirmed before it was returned")
	}
}

func TestRoutedMandatoryAndUnroutableOptionalMessagesAreNotReturned(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	must(t, channel.Confirm(false))
	returns := channel.NotifyReturn(make(chan amqp.Return, 2))
	confirmed(t, channel, queue, true, "kept")
	confirmed(t, channel, uniqueName(t), false, "dropped")
	equal(t, "returned messages", len(returns), 0)
	equal(t, "messages", readyCount(t, channel, queue), 1)
}

// confirmed publishes through the default exchange and waits for a positive confirm.
func confirmed(t *testing.T, channel *amqp.Channel, key string, mandatory bool, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	message := amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent}
	confirmation, err := channel.PublishWithDeferredConfirmWithContext(ctx, "", key, mandatory, false, message)
	must(t, err)
	acked, err := confirmation.WaitContext(ctx)
	must(t, err)
	equal(t, "acked", acked, true)
}
