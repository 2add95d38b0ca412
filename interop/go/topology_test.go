package interop

import (
	"strings"
	"testing"
)

func TestExchangeBoundToAnExchangePassesMessagesOnUntilUnbound(t *testing.T) {
	connection := connect(t)
	channel := openChannel(t, connection)
	source := declareExchange(t, connection, "topic")
	destination := declareExchange(t, connection, "fanout")
	queue := declareQueue(t, channel)
	must(t, channel.ExchangeBind(destination, "news.#", source, false, nil))
	must(t, channel.QueueBind(queue, "", destination, false, nil))
	deliveries := consume(t, channel, queue, true)

	publish(t, channel, source, "sport.today", "unmatched")
	publish(t, channel, source, "news.today", "matched")
	message := receive(t, deliveries)
	equal(t, "body", string(message.Body), "matched")
	equal(t, "exchange", message.Exchange, source)
	equal(t, "routing key", message.RoutingKey, "news.today")

	must(t, channel.ExchangeUnbind(destination, "news.#", source, false, nil))
	publish(t, channel, source, "news.today", "unbound")
	staysEmpty(t, deliveries)
}

func TestQueueDeclaredWithoutANameGetsOneFromTheServer(t *testing.T) {
	channel := openChannel(t, connect(t))
	names := map[string]bool{}
	for i := 0; i < 2; i++ {
		queue, err := channel.QueueDeclare("", false, false, true, false, nil)
		must(t, err)
		equal(t, "prefix amq.gen- of "+queue.Name, strings.HasPrefix(queue.Name, "amq.gen-"), true)
		names[queue.Name] = true
		publish(t, channel, "", queue.Name, "to the generated name")
		equal(t, "body", string(get(t, channel, queue.Name, true).Body), "to the generated name")
	}
	equal(t, "distinct names", len(names), 2)
}

func TestTopicBindingsSelectByWord(t *testing.T) {
	connection := connect(t)
	channel := openChannel(t, connection)
	exchange := declareExchange(t, connection, "topic")
	queue := declareQueue(t, channel)
	must(t, channel.QueueBind(queue, "*.orange.#", exchange, false, nil))
	matched := []string{"quick.orange", "quick.orange.male.rabbit", "lazy.orange.elephant"}
	for _, key := range append([]string{"orange", "a.b.orange"}, matched...) {
		publish(t, channel, exchange, key, key)
	}
	deliveries := consume(t, channel, queue, true)
	equalSlices(t, "bodies", bodies(take(t, deliveries, 3)), matched)
	staysEmpty(t, deliveries)
}

func TestPurgeAndDeleteReportHowManyMessagesWent(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	publish(t, channel, "", queue, numbered(5)...)
	purged, err := channel.QueuePurge(queue, false)
	must(t, err)
	equal(t, "purged", purged, 5)
	publish(t, channel, "", queue, "one more")
	deleted, err := channel.QueueDelete(queue, false, false, false)
	must(t, err)
	equal(t, "deleted", deleted, 1)
}
