package leveret.interop;

import static leveret.interop.Inbox.tag;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import java.util.List;
import org.junit.jupiter.api.Test;

class TransactionTest extends BrokerTest {
    @Test
    void publishedMessagesAppearAtCommitAndNotBefore() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        channel.txSelect();
        publish(channel, "", queue, numbered(3));
        assertEquals(0, readyCount(channel, queue));
        channel.txCommit();
        assertEquals(3, readyCount(channel(), queue));
    }

    @Test
    void rollbackDiscardsPublishedMessages() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        channel.txSelect();
        publish(channel, "", queue, "discarded", "discarded");
        channel.txRollback();
        publish(channel, "", queue, "kept");
        channel.txCommit();
        assertEquals(1, readyCount(channel, queue));
        assertEquals("kept", text(get(channel, queue, false).getBody()));
    }

    @Test
    void rolledBackAcknowledgementsAreUndone() throws Exception {
        assertEquals(2, leftAfterAcknowledgingOneOfTwo(Channel::txRollback));
    }

    @Test
    void committedAcknowledgementsStand() throws Exception {
        assertEquals(1, leftAfterAcknowledgingOneOfTwo(Channel::txCommit));
    }

    private interface TransactionEnd {
        void of(Channel channel) throws Exception;
    }

    /** Closing a channel gives back what its consumer holds unacknowledged, before close-ok. */
    private int leftAfterAcknowledgingOneOfTwo(TransactionEnd end) throws Exception {
        Channel observer = channel();
        String queue = queue(observer);
        publish(observer, "", queue, numbered(2));

        Channel channel = channel();
        channel.txSelect();
        List<Delivery> messages = Inbox.consume(channel, queue, false).take(2);
        channel.basicAck(tag(messages.get(0)), false);
        end.of(channel);
        channel.close();
        return readyCount(observer, queue);
    }
}
