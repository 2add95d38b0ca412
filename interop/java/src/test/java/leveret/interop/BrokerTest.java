package leveret.interop;

import static org.junit.jupiter.api.Assertions.assertNotNull;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.GetResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/**
 * A test with a connection of its own. Queues declared here are exclusive, so they go with the
 * connection; exchanges are deleted after the test.
 */
abstract class BrokerTest {
    static final int WAIT_MILLIS = 5_000;

    Connection connection;
    private final List<String> exchanges = new ArrayList<>();

    static ConnectionFactory factory() {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setHost(System.getenv().getOrDefault("AMQP_HOST", "127.0.0.1"));
        factory.setPort(Integer.parseInt(System.getenv().getOrDefault("AMQP_PORT", "5672")));
        factory.setUsername("guest");
        factory.setPassword("guest");
        factory.setVirtualHost("/");
        factory.setConnectionTimeout(WAIT_MILLIS);
        factory.setHandshakeTimeout(WAIT_MILLIS);
        factory.setChannelRpcTimeout(WAIT_MILLIS);
        return factory;
    }

    @BeforeEach
    void connect() throws IOException, TimeoutException {
        connection = factory().newConnection();
    }

    @AfterEach
    void disconnect() throws IOException {
        if (connection != null) {
            for (String exchange : exchanges) {
                channel().exchangeDelete(exchange);
            }
            connection.close(WAIT_MILLIS);
        }
    }

    static String uniqueName(String purpose) {
        return "interop.java." + purpose + "." + UUID.randomUUID();
    }

    Channel channel() throws IOException {
        Channel channel = connection.createChannel();
        assertNotNull(channel, "no channel number is free");
        return channel;
    }

    String queue(Channel channel) throws IOException {
        return channel.queueDeclare(uniqueName("queue"), false, true, false, null).getQueue();
    }

    String exchange(Channel channel, String type) throws IOException {
        String name = uniqueName(type);
        channel.exchangeDeclare(name, type);
        exchanges.add(name);
        return name;
    }

    static void publish(Channel channel, String exchange, String routingKey, String... bodies)
            throws IOException {
        for (String body : bodies) {
            channel.basicPublish(exchange, routingKey, null, bytes(body));
        }
    }

    static GetResponse get(Channel channel, String queue, boolean autoAck) throws IOException {
        GetResponse message = channel.basicGet(queue, autoAck);
        assertNotNull(message, "the queue is empty");
        return message;
    }

    /** The messages ready for delivery; those delivered and not acknowledged do not count. */
    static int readyCount(Channel channel, String queue) throws IOException {
        AMQP.Queue.DeclareOk state = channel.queueDeclarePassive(queue);
        return state.getMessageCount();
    }

    /** m0, m1, …: bodies whose order can be checked. */
    static String[] numbered(int count) {
        return IntStream.range(0, count).mapToObj(i -> "m" + i).toArray(String[]::new);
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] body) {
        return new String(body, StandardCharsets.UTF_8);
    }

    static Map<String, Object> noArguments() {
        return Map.of();
    }
}
