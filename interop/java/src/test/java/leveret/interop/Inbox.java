package leveret.interop;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.DefaultConsumer;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Envelope;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A consumer's deliveries in order of arrival, and whether the broker has cancelled it. */
final class Inbox extends DefaultConsumer {
    private static final int QUIET_MILLIS = 200;

    private final BlockingQueue<Delivery> arrived = new LinkedBlockingQueue<>();
    private final CountDownLatch cancelled = new CountDownLatch(1);
    private String tag;

    private Inbox(Channel channel) {
        super(channel);
    }

    static Inbox consume(Channel channel, String queue, boolean autoAck) throws IOException {
        Inbox inbox = new Inbox(channel);
        inbox.tag = channel.basicConsume(queue, autoAck, inbox);
        return inbox;
    }

    /** Stops the consumer, whose tag the server chose. */
    void cancel() throws IOException {
        assertTrue(tag.startsWith("amq.ctag-"), tag);
        getChannel().basicCancel(tag);
    }

    @Override
    public void handleDelivery(
            String consumerTag, Envelope envelope, AMQP.BasicProperties properties, byte[] body) {
        arrived.add(new Delivery(envelope, properties, body));
    }

    @Override
    public void handleCancel(String consumerTag) {
        cancelled.countDown();
    }

    Delivery next() throws InterruptedException {
        Delivery delivery = arrived.poll(BrokerTest.WAIT_MILLIS, TimeUnit.MILLISECONDS);
        assertNotNull(delivery, "no delivery in time");
        return delivery;
    }

    List<Delivery> take(int count) throws InterruptedException {
        List<Delivery> deliveries = new ArrayList<>(count);
        while (deliveries.size() < count) {
            deliveries.add(next());
        }
        return deliveries;
    }

    /** Fails if a delivery comes while the broker has time to send one. */
    void staysEmpty() throws InterruptedException {
        Delivery unexpected = arrived.poll(QUIET_MILLIS, TimeUnit.MILLISECONDS);
        assertNull(unexpected, () -> "unexpected: " + BrokerTest.text(unexpected.getBody()));
    }

    void awaitCancel() throws InterruptedException {
        boolean came = cancelled.await(BrokerTest.WAIT_MILLIS, TimeUnit.MILLISECONDS);
        assertTrue(came, "the broker did not cancel the consumer");
    }

    static List<String> texts(List<Delivery> deliveries) {
        return deliveries.stream().map(delivery -> BrokerTest.text(delivery.getBody())).toList();
    }

    static long tag(Delivery delivery) {
        return delivery.getEnvelope().getDeliveryTag();
    }
}
