package leveret.interop;

import static leveret.interop.Inbox.tag;
import static leveret.interop.Inbox.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

class RedeliveryTest extends BrokerTest {
    private interface GiveBack {
        void apply(Channel channel, long tag, boolean requeue) throws IOException;
    }

    @Test
    void nackWithRequeueRedeliversWithoutRequeueDrops() throws Exception {
        givesBack((channel, tag, requeue) -> channel.basicNack(tag, false, requeue));
    }

    @Test
    void rejectWithRequeueRedeliversWithoutRequeueDrops() throws Exception {
        givesBack(Channel::basicReject);
    }

    private void givesBack(GiveBack giveBack) throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        Inbox inbox = Inbox.consume(channel, queue, false);
        publish(channel, "", queue, "again");

        Delivery first = inbox.next();
        assertFalse(first.getEnvelope().isRedeliver());
        giveBack.apply(channel, tag(first), true);

        Delivery second = inbox.next();
        assertEquals("again", text(second.getBody()));
        assertTrue(second.getEnvelope().isRedeliver());
        assertEquals(2, tag(second));
        giveBack.apply(channel, tag(second), false);

        inbox.staysEmpty();
        assertEquals(0, readyCount(channel, queue));
    }

    @Test
    void nackOfSeveralPutsThemBackInTheirPlaces() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        publish(channel, "", queue, numbered(6));
        for (int i = 0; i < 3; i++) {
            get(channel, queue, false);
        }
        channel.basicNack(get(channel, queue, false).getEnvelope().getDeliveryTag(), true, true);

        for (int i = 0; i < 6; i++) {
            GetResponse message = get(channel, queue, true);
            assertEquals("m" + i, text(message.getBody()));
            assertEquals(i < 4, message.getEnvelope().isRedeliver());
        }
    }

    @Test
    void prefetchLimitsWhatAConsumerHolds() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        publish(channel, "", queue, numbered(10));
        channel.basicQos(3);
        Inbox inbox = Inbox.consume(channel, queue, false);

        List<Delivery> held = inbox.take(3);
        assertEquals(7, readyCount(channel, queue));
        inbox.staysEmpty();

        channel.basicAck(tag(held.get(0)), false);
        held.add(inbox.next());
        inbox.staysEmpty();

        channel.basicAck(tag(held.get(3)), true);
        held.addAll(inbox.take(3));
        assertEquals(List.of(numbered(7)), texts(held));
        inbox.staysEmpty();
        assertEquals(3, readyCount(channel, queue));
    }

    @Test
    void globalPrefetchIsSharedByTheConsumersOfTheChannel() throws Exception {
        Channel channel = channel();
        String one = queue(channel);
        String two = queue(channel);
        publish(channel, "", one, numbered(5));
        publish(channel, "", two, numbered(5));
        channel.basicQos(4, true);
        Inbox first = Inbox.consume(channel, one, false);
        Inbox second = Inbox.consume(channel, two, false);

        // The first consumer has filled the limit before the second one exists.
        assertEquals(List.of(numbered(4)), texts(first.take(4)));
        first.staysEmpty();
        second.staysEmpty();
        assertEquals(5, readyCount(channel, two));
    }

    @Test
    void recoverRedeliversEverythingUnacknowledged() throws Exception {
        Channel channel = channel();
        String queue = queue(channel);
        publish(channel, "", queue, numbered(3));
        Inbox inbox = Inbox.consume(channel, queue, false);
        channel.basicAck(tag(inbox.take(3).get(0)), false);

        channel.basicRecover(true);
        List<Delivery> again = inbox.take(2);
        assertEquals(List.of("m1", "m2"), texts(again));
        assertTrue(again.stream().allMatch(message -> message.getEnvelope().isRedeliver()));
    }
}
