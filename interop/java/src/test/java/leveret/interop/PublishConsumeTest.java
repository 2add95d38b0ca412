package leveret.interop;

import static leveret.interop.Inbox.tag;
import static leveret.interop.Inbox.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.util.List;
import org.junit.jupiter.api.Test;

class PublishConsumeTest extends BrokerTest {
    @Test
    void messagesAreDeliveredInOrderAndAcknowledgedOnesAreGone() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        publish(channel, "", queue, numbered(200));

        List<Delivery> messages = Inbox.consume(channel, queue, false).take(200);
        assertEquals(List.of(numbered(200)), texts(messages));
        for (int i = 0; i < messages.size(); i++) {
            assertEquals(i + 1, tag(messages.get(i)));
            assertFalse(messages.get(i).getEnvelope().isRedeliver());
        }

        // 0..9 one by one, the rest but the last in one stroke: closing gives the last one back.
        for (Delivery message : messages.subList(0, 10)) {
            channel.basicAck(tag(message), false);
        }
        channel.basicAck(tag(messages.get(198)), true);
        channel.close();

        Channel after = channel();
        assertEquals(1, readyCount(after, queue));
        GetResponse left = get(after, queue, true);
        assertEquals("m199", text(left.getBody()));
        assertTrue(left.getEnvelope().isRedeliver());
    }

    @Test
    void consumerWithoutAcknowledgementsLeavesNothingBehind() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        Inbox inbox = Inbox.consume(channel, queue, true);
        publish(channel, "", queue, numbered(50));
        assertEquals(List.of(numbered(50)), texts(inbox.take(50)));
        channel.close();
        assertEquals(0, readyCount(channel(), queue));
    }

    @Test
    void getTakesOneMessageCountsTheRestAndSaysWhenEmpty() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        publish(channel, "", queue, numbered(2));

        GetResponse first = get(channel, queue, false);
        assertEquals("m0", text(first.getBody()));
        assertEquals(1, first.getMessageCount());
        assertEquals("", first.getEnvelope().getExchange());
        assertEquals(queue, first.getEnvelope().getRoutingKey());
        channel.basicAck(first.getEnvelope().getDeliveryTag(), false);

        GetResponse second = get(channel, queue, true);
        assertEquals("m1", text(second.getBody()));
        assertEquals(0, second.getMessageCount());
        assertNull(channel.basicGet(queue, false));
    }

    @Test
    void cancelledConsumerGetsNoMoreMessages() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        Inbox inbox = Inbox.consume(channel, queue, false);
        inbox.cancel();
        publish(channel, "", queue, "unclaimed");
        inbox.staysEmpty();
        assertEquals(1, readyCount(channel, queue));
    }

    @Test
    void deletingAQueueCancelsItsConsumers() throws Exception {
        Channel consuming = channel();
        String queue = queue(consuming);
        Inbox inbox = Inbox.consume(consuming, queue, false);
        channel().queueDelete(queue);
        inbox.awaitCancel();
        assertTrue(consuming.isOpen(), "only the consumer goes, not its channel");
    }
}
