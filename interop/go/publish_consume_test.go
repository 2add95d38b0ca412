package interop

import "testing"

func TestMessagesAreDeliveredInOrderAndAcknowledgedOnesAreGone(t *testing.T) {
	connection := connect(t)
	channel := openChannel(t, connection)
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, numbered(200)...)

	messages := take(t, consume(t, channel, queue, false), 200)
	equalSlices(t, "bodies", bodies(messages), numbered(200))
	for i, message := range messages {
		equal(t, "delivery tag", message.DeliveryTag, uint64(i+1))
		equal(t, "redelivered", message.Redelivered, false)
	}

	// 0..9 one by one, the rest but the last in one stroke: closing gives the last one back.
	for _, message := range messages[:10] {
		must(t, message.Ack(false))
	}
	must(t, messages[198].Ack(true))
	must(t, channel.Close())

	after := openChannel(t, connection)
	equal(t, "messages left", readyCount(t, after, queue), 1)
	left := get(t, after, queue, true)
	equal(t, "body", string(left.Body), "m199")
	equal(t, "redelivered", left.Redelivered, true)
}

func TestConsumerWithoutAcknowledgementsLeavesNothingBehind(t *testing.T) {
	connection := connect(t)
	channel := openChannel(t, connection)
	queue := declareQueue(t, channel)
	deliveries := consume(t, channel, queue, true)
	publish(t, channel, "", queue, numbered(50)...)
	equalSlices(t, "bodies", bodies(take(t, deliveries, 50)), numbered(50))
	must(t, channel.Close())
	equal(t, "messages left", readyCount(t, openChannel(t, connection), queue), 0)
}

func TestGetTakesOneMessageCountsTheRestAndSaysWhenEmpty(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, numbered(2)...)

	first := get(t, channel, queue, false)
	equal(t, "body", string(first.Body), "m0")
	equal(t, "messages left", first.MessageCount, 1)
	equal(t, "exchange", first.Exchange, "")
	equal(t, "routing key", first.RoutingKey, queue)
	must(t, first.Ack(false))

	second := get(t, channel, queue, true)
	equal(t, "body", string(second.Body), "m1")
	equal(t, "messages left", second.MessageCount, 0)

	_, ok, err := channel.Get(queue, false)
	must(t, err)
	equal(t, "a message in the empty queue", ok, false)
}

func TestCancelledConsumerGetsNoMoreMessages(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	deliveries, err := channel.Consume(queue, "the-consumer", false, false, false, false, nil)
	must(t, err)
	must(t, channel.Cancel("the-consumer", false))
	if delivery, open := <-deliveries; open {
		t.Fatalf("delivery %q after the cancel", delivery.Body)
	}
	publish(t, channel, "", queue, "unclaimed")
	equal(t, "body", string(get(t, channel, queue, true).Body), "unclaimed")
}

func TestDeletingAQueueCancelsItsConsumers(t *testing.T) {
	connection := connect(t)
	consuming, deleting := openChannel(t, connection), openChannel(t, connection)
	queue := declareQueue(t, consuming)
	cancelled := consuming.NotifyCancel(make(chan string, 1))
	deliveries, err := consuming.Consume(queue, "the-consumer", false, false, false, false, nil)
	must(t, err)

	_, err = deleting.QueueDelete(queue, false, false, false)
	must(t, err)
	equal(t, "cancelled consumer", receive(t, cancelled), "the-consumer")
	if delivery, open := <-deliveries; open {
		t.Fatalf("delivery %q after the cancel", delivery.Body)
	}
}
