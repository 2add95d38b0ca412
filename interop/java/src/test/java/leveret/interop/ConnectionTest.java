package leveret.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ConnectionTest extends BrokerTest {
    @Test
    void serverAdvertisesTheExtensionsClientsSwitchOn() {
        Object advertised = connection.getServerProperties().get("capabilities");
        Map<?, ?> capabilities = assertInstanceOf(Map.class, advertised);
        List<String> needed = List.of(
                "publisher_confirms", "exchange_exchange_bindings", "basic.nack",
                "consumer_cancel_notify", "connection.blocked", "consumer_priorities",
                "authentication_failure_close", "per_consumer_qos", "direct_reply_to");
        for (String name : needed) {
            assertEquals(true, capabilities.get(name), name);
        }
    }

    @Test
    void wrongPasswordIsRefusedWithAccessRefused() {
        ConnectionFactory factory = factory();
        factory.setPassword("wrong");
        var refusal = assertThrows(AuthenticationFailureException.class, factory::newConnection);
        assertTrue(refusal.getMessage().startsWith("ACCESS_REFUSED"), refusal.getMessage());
    }

    @Test
    void missingVirtualHostIsRefusedWithNotAllowed() {
        ConnectionFactory factory = factory();
        factory.setVirtualHost("interop-no-such-vhost");
        IOException refusal = assertThrows(IOException.class, factory::newConnection);
        var signal = assertInstanceOf(ShutdownSignalException.class, refusal.getCause());
        assertEquals(530, ChannelErrorTest.replyCode(signal));
    }

    @Test
    void channelNumbersAreReusedUpToTheNegotiatedMaximum() throws Exception {
        ConnectionFactory factory = factory();
        factory.setRequestedChannelMax(8);
        try (Connection limited = factory.newConnection()) {
            assertEquals(8, limited.getChannelMax());
            for (int round = 0; round < 3; round++) {
                List<Channel> channels = new ArrayList<>();
                for (int i = 0; i < 8; i++) {
                    channels.add(limited.createChannel());
                }
                assertNull(limited.createChannel());
                for (Channel channel : channels) {
                    publish(channel, "", queue(channel), "usable");
                    channel.close();
                }
            }
        }
    }

    @Test
    void declarationsWithoutWaitingTakeEffectInOrder() throws Exception {
        Channel channel = channel();
        String queue = uniqueName("queue");
        String exchange = uniqueName("exchange");
        channel.exchangeDeclareNoWait(exchange, "direct", false, true, false, noArguments());
        channel.queueDeclareNoWait(queue, false, true, false, noArguments());
        channel.queueBindNoWait(queue, exchange, "key", noArguments());
        publish(channel, exchange, "key", "delivered");
        assertEquals("delivered", text(get(channel, queue, true).getBody()));
        channel.queueDeleteNoWait(queue, false, false);
        assertThrows(IOException.class, () -> channel.queueDeclarePassive(queue));
    }
}
