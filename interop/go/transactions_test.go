package interop

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestPublishedMessagesAppearAtCommitAndNotBefore(t *testing.T) {
	connection := connect(t)
	channel, observer := openChannel(t, connection), openChannel(t, connection)
	queue := declareQueue(t, channel)
	must(t, channel.Tx())
	publish(t, channel, "", queue, numbered(3)...)
	equal(t, "messages before the commit", readyCount(t, channel, queue), 0)
	must(t, channel.TxCommit())
	equal(t, "messages after the commit", readyCount(t, observer, queue), 3)
}

func TestRollbackDiscardsPublishedMessages(t *testing.T) {
	channel := openChannel(t, connect(t))
	queue := declareQueue(t, channel)
	must(t, channel.Tx())
	publish(t, channel, "", queue, "discarded", "discarded")
	must(t, channel.TxRollback())
	publish(t, channel, "", queue, "kept")
	must(t, channel.TxCommit())
	equal(t, "messages", readyCount(t, channel, queue), 1)
	equal(t, "body", string(get(t, channel, queue, false).Body), "kept")
}

func TestAcknowledgementsCountOnlyOnceCommitted(t *testing.T) {
	connection := connect(t)
	setUp := openChannel(t, connection)
	queue := declareQueue(t, setUp)
	publish(t, setUp, "", queue, numbered(2)...)

	// Closing a channel gives back what its consumer holds unacknowledged, before close-ok.
	for _, step := range []struct {
		name string
		end  func(*amqp.Channel) error
		left int
	}{
		{"rollback", (*amqp.Channel).TxRollback, 2},
		{"commit", (*amqp.Channel).TxCommit, 1},
	} {
		channel := openChannel(t, connection)
		must(t, channel.Tx())
		messages := take(t, consume(t, channel, queue, false), 2)
		must(t, messages[0].Ack(false))
		must(t, step.end(channel))
		must(t, channel.Close())
		equal(t, "messages after the "+step.name, readyCount(t, setUp, queue), step.left)
	}
}
