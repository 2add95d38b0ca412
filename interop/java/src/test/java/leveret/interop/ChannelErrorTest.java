package leveret.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ChannelErrorTest extends BrokerTest {
    private interface Action {
        void on(Channel channel) throws IOException;
    }

    @Test
    void passiveDeclareOfAMissingQueueClosesTheChannelWith404() throws Exception {
        Channel bystander = channel();
        String missing = uniqueName("missing");
        String text = "NOT_FOUND - no queue '" + missing + "' in vhost '/'";
        closesChannel(404, text, channel -> channel.queueDeclarePassive(missing));
        usable(bystander);
    }

    @Test
    void redeclaringAQueueWithOtherArgumentsClosesTheChannelWith406() throws Exception {
        Channel owner = channel();
        String queue = queue(owner);
        Map<String, Object> arguments = Map.of("x-message-ttl", 60_000);
        String text = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl'";
        closesChannel(406, text, other -> other.queueDeclare(queue, false, true, false, arguments));
        usable(owner);
    }

    @Test
    void publishingToAMissingExchangeClosesTheChannelWith404() throws Exception {
        String missing = uniqueName("missing");
        String text = "NOT_FOUND - no exchange '" + missing + "' in vhost '/'";
        closesChannel(404, text, channel -> publish(channel, missing, "key", "body"));
    }

    @Test
    void acknowledgingAnUnknownDeliveryTagClosesTheChannelWith406() throws Exception {
        String text = "PRECONDITION_FAILED - unknown delivery tag 77";
        closesChannel(406, text, channel -> channel.basicAck(77, false));
    }

    /** Checks the error, and that the connection still gives a working channel. */
    private void closesChannel(int code, String text, Action action) throws Exception {
        Channel channel = channel();
        BlockingQueue<ShutdownSignalException> shutdowns = new LinkedBlockingQueue<>();
        channel.addShutdownListener(shutdowns::add);
        try {
            action.on(channel);
        } catch (IOException failure) {
            // An action that waits for an answer meets the error itself.
            var cause = assertInstanceOf(ShutdownSignalException.class, failure.getCause());
            assertEquals(code, replyCode(cause));
        }
        ShutdownSignalException signal = shutdowns.poll(WAIT_MILLIS, TimeUnit.MILLISECONDS);
        assertNotNull(signal, "the channel did not close");
        assertEquals(code, replyCode(signal));
        assertTrue(signal.getMessage().contains("reply-text=" + text), signal.getMessage());
        assertFalse(signal.isHardError(), "only the channel closes");
        assertFalse(channel.isOpen());
        usable(channel());
    }

    private void usable(Channel channel) throws IOException {
        String queue = queue(channel);
        publish(channel, "", queue, "still here");
        assertEquals("still here", text(get(channel, queue, true).getBody()));
    }

    static int replyCode(ShutdownSignalException signal) {
        return signal.getReason() instanceof AMQP.Channel.Close close
                ? close.getReplyCode()
                : assertInstanceOf(AMQP.Connection.Close.class, signal.getReason()).getReplyCode();
    }
}
