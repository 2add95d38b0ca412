package interop

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestNackWithRequeueRedeliversWithoutRequeueDrops(t *testing.T) {
	givesBack(t, func(message amqp.Delivery, requeue bool) error { return message.Nack(false, requeue) })
}

func TestRejectWithRequeueRedeliversWithoutRequeueDrops(t *testing.T) {
	givesBack(t, func(message amqp.Delivery, requeue bool) error { return message.Reject(requeue) })
}

func givesBack(t *testing.T, giveBack func(message amqp.Delivery, requeue bool) error) {
	t.Helper()
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	deliveries := consume(t, channel, queue, false)
	publish(t, channel, "", queue, "again")

	first := receive(t, deliveries)
	equal(t, "redelivered", first.Redelivered, false)
	must(t, giveBack(first, true))

	second := receive(t, deliveries)
	equal(t, "body", string(second.Body), "again")
	equal(t, "redelivered", second.Redelivered, true)
	equal(t, "delivery tag", second.DeliveryTag, 2)
	must(t, giveBack(second, false))

	staysEmpty(t, deliveries)
	equal(t, "messages left", readyCount(t, channel, queue), 0)
}

func TestNackOfSeveralPutsThemBackInTheirPlaces(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, numbered(6)...)
	for i := 0; i < 3; i++ {
		get(t, channel, queue, false)
	}
	must(t, get(t, channel, queue, false).Nack(true, true))

	for i, body := range numbered(6) {
		message := get(t, channel, queue, true)
		equal(t, "body", string(message.Body), body)
		equal(t, "redelivered", message.Redelivered, i < 4)
	}
}

func TestPrefetchLimitsWhatAConsumerHolds(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, numbered(10)...)
	must(t, channel.Qos(3, 0, false))
	deliveries := consume(t, channel, queue, false)

	held := take(t, deliveries, 3)
	equal(t, "messages left", readyCount(t, channel, queue), 7)
	staysEmpty(t, deliveries)

	must(t, held[0].Ack(false))
	held = append(held, receive(t, deliveries))
	staysEmpty(t, deliveries)

	must(t, held[3].Ack(true))
	held = append(held, take(t, deliveries, 3)...)
	equalSlices(t, "bodies", bodies(held), numbered(7))
	staysEmpty(t, deliveries)
	equal(t, "messages left", readyCount(t, channel, queue), 3)
}

func TestGlobalPrefetchIsSharedByTheConsumersOfTheChannel(t *testing.T) {
	channel := openChannel(t, connect(t))
	one, two := declareQueue(t, channel), declareQueue(t, channel)
	publish(t, channel, "", one, numbered(5)...)
	publish(t, channel, "", two, numbered(5)...)
	must(t, channel.Qos(4, 0, true))
	first, second := consume(t, channel, one, false), consume(t, channel, two, false)

	// The first consumer has filled the limit before the second one exists.
	equalSlices(t, "bodies", bodies(take(t, first, 4)), numbered(4))
	staysEmpty(t, first)
	staysEmpty(t, second)
	equal(t, "messages left", readyCount(t, channel, two), 5)
}

func TestRecoverRedeliversEverythingUnacknowledged(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, numbered(3)...)
	deliveries := consume(t, channel, queue, false)
	must(t, take(t, deliveries, 3)[0].Ack(false))

	must(t, channel.Recover(true))
	again := take(t, deliveries, 2)
	equalSlices(t, "bodies", bodies(again), []string{"m1", "m2"})
	equal(t, "redelivered", again[0].Redelivered && again[1].Redelivered, true)
}
