package leveret.interop;

import static leveret.interop.Inbox.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import java.util.List;
import org.junit.jupiter.api.Test;

class TopologyTest extends BrokerTest {
    @Test
    void exchangeBoundToAnExchangePassesMessagesOnUntilUnbound() throws Exception {
        Channel channel = channel();
        String source = exchange(channel, "topic");
        String destination = exchange(channel, "fanout");
        String queue = queue(channel);
        channel.exchangeBind(destination, source, "news.#");
        channel.queueBind(queue, destination, "");
        Inbox inbox = Inbox.consume(channel, queue, true);

        publish(channel, source, "sport.today", "unmatched");
        publish(channel, source, "news.today", "matched");
        Delivery message = inbox.next();
        assertEquals("matched", text(message.getBody()));
        assertEquals(source, message.getEnvelope().getExchange());
        assertEquals("news.today", message.getEnvelope().getRoutingKey());

        channel.exchangeUnbind(destination, source, "news.#");
        publish(channel, source, "news.today", "unbound");
        inbox.staysEmpty();
    }

    @Test
    void queueDeclaredWithoutANameGetsOneFromTheServer() throws Exception {
        Channel channel = channel();
        String first = channel.queueDeclare().getQueue();
        String second = channel.queueDeclare().getQueue();
        assertTrue(first.startsWith("amq.gen-"), first);
        assertTrue(second.startsWith("amq.gen-"), second);
        assertNotEquals(first, second);
        publish(channel, "", first, "to the generated name");
        assertEquals("to the generated name", text(get(channel, first, true).getBody()));
    }

    @Test
    void topicBindingsSelectByWord() throws Exception {
        Channel channel = channel();
        String exchange = exchange(channel, "topic");
        String queue = queue(channel);
        channel.queueBind(queue, exchange, "*.orange.#");
        for (String key : List.of("orange", "a.b.orange", "quick.orange", "lazy.orange.male.fox")) {
            publish(channel, exchange, key, key);
        }
        Inbox inbox = Inbox.consume(channel, queue, true);
        assertEquals(List.of("quick.orange", "lazy.orange.male.fox"), texts(inbox.take(2)));
        inbox.staysEmpty();
    }

    @Test
    void purgeAndDeleteReportHowManyMessagesWent() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        publish(channel, "", queue, numbered(5));
        assertEquals(5, channel.queuePurge(queue).getMessageCount());
        publish(channel, "", queue, "one more");
        assertEquals(1, channel.queueDelete(queue).getMessageCount());
    }
}
