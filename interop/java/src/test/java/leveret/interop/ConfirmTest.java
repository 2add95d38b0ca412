package leveret.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.MessageProperties;
import com.rabbitmq.client.Return;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ConfirmTest extends BrokerTest {
    @Test
    void singlePublishIsConfirmed() throws Exception {
        Channel channel = confirmChannel();
        String queue = queue(channel);
        publish(channel, "", queue, "only");
        assertTrue(channel.waitForConfirms(WAIT_MILLIS));
        assertEquals(1, readyCount(channel, queue));
    }

    @Test
    void thousandOutstandingPublishesAreEachConfirmed() throws Exception {
        Channel channel = confirmChannel();
        String queue = queue(channel);
        var outstanding = new ConcurrentSkipListSet<Long>();
        var nacked = new LinkedBlockingQueue<Long>();
        channel.addConfirmListener(
                (tag, multiple) -> {
                    if (multiple) {
                        outstanding.headSet(tag, true).clear();
                    } else {
                        outstanding.remove(tag);
                    }
                },
                (tag, multiple) -> nacked.add(tag));
        for (String body : numbered(1000)) {
            outstanding.add(channel.getNextPublishSeqNo());
            channel.basicPublish(
                    "", queue, MessageProperties.MINIMAL_PERSISTENT_BASIC, bytes(body));
        }
        assertTrue(channel.waitForConfirms(WAIT_MILLIS));
        assertEquals(List.of(), List.copyOf(outstanding));
        assertEquals(List.of(), List.copyOf(nacked));
        assertEquals(1000, readyCount(channel, queue));
    }

    @Test
    void unroutableMandatoryMessageIsReturnedBeforeItsConfirm() throws Exception {
        Channel channel = confirmChannel();
        BlockingQueue<Object> events = events(channel);
        String nowhere = uniqueName("missing");
        channel.basicPublish("", nowhere, true, null, bytes("lost"));

        Object first = events.poll(WAIT_MILLIS, TimeUnit.MILLISECONDS);
        if (!(first instanceof Return returned)) {
            throw new AssertionError("expected a return first, got " + first);
        }
        assertEquals(312, returned.getReplyCode());
        assertEquals("NO_ROUTE", returned.getReplyText());
        assertEquals("", returned.getExchange());
        assertEquals(nowhere, returned.getRoutingKey());
        assertEquals("lost", text(returned.getBody()));
        assertEquals(1L, events.poll(WAIT_MILLIS, TimeUnit.MILLISECONDS));
    }

    @Test
    void routedMandatoryAndUnroutableOptionalMessagesAreNotReturned() throws Exception {
        Channel channel = confirmChannel();
        String queue = queue(channel);
        BlockingQueue<Object> events = events(channel);
        channel.basicPublish("", queue, true, null, bytes("kept"));
        assertEquals(1L, events.poll(WAIT_MILLIS, TimeUnit.MILLISECONDS));
        channel.basicPublish("", uniqueName("missing"), false, null, bytes("dropped"));
        assertEquals(2L, events.poll(WAIT_MILLIS, TimeUnit.MILLISECONDS));
        assertEquals(1, readyCount(channel, queue));
    }

    private Channel confirmChannel() throws IOException {
        Channel channel = channel();
        channel.confirmSelect();
        return channel;
    }

    /** Returns, and the tags of confirms, in the order the broker sent them. */
    private static BlockingQueue<Object> events(Channel channel) {
        BlockingQueue<Object> events = new LinkedBlockingQueue<>();
        channel.addReturnListener(returned -> events.add(returned));
        channel.addConfirmListener(
                (tag, multiple) -> events.add(tag),
                (tag, multiple) -> events.add("nacked " + tag));
        return events;
    }
}
