package leveret.interop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.LongString;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ContentTest extends BrokerTest {
    private static final int FRAME_OVERHEAD = 8; // type, channel, size and end marker

    @Test
    void bodyOf1MiBSpansFramesAndArrivesByteForByte() throws Exception {
        byte[] body = noise(1 << 20);
        int frameMax = connection.getFrameMax();
        assertTrue(frameMax > 0 && frameMax < body.length, "the body must not fit a frame");
        assertArrayEquals(body, roundTrip(body, null).getBody());
    }

    @Test
    void bodiesAtTheEdgeOfAFrameArriveByteForByte() throws Exception {
        int full = connection.getFrameMax() - FRAME_OVERHEAD;
        for (int size : new int[] {full - 1, full, full + 1, 2 * full}) {
            byte[] body = noise(size);
            assertArrayEquals(body, roundTrip(body, null).getBody());
        }
    }

    @Test
    void emptyBodyArrivesEmptyAndTheNextMessageIsIntact() throws Exception {
        assertEquals(0, roundTrip(new byte[0], null).getBody().length);
        assertEquals("next", text(roundTrip(bytes("next"), null).getBody()));
    }

    @Test
    void everyHeaderValueTypeSurvivesNestedToo() throws Exception {
        Map<String, Object> values = new HashMap<>();
        values.put("string", "Grüße 🐇");
        values.put("emptyString", "");
        values.put("yes", true);
        values.put("no", false);
        values.put("nothing", null);
        values.put("int8", Byte.MIN_VALUE);
        values.put("int16", Short.MIN_VALUE);
        values.put("int32", Integer.MIN_VALUE);
        values.put("int64", Long.MIN_VALUE);
        values.put("float", 1.5f);
        values.put("double", Math.PI);
        values.put("timestamp", new Date(1_700_000_000_000L));
        values.put("decimal", new BigDecimal("123.45"));
        Map<String, Object> headers = new HashMap<>(values);
        headers.put("emptyTable", Map.of());
        headers.put("emptyArray", List.of());
        headers.put("table", Map.of("deeper", values));
        List<Object> everyValue = new ArrayList<>(values.values());
        headers.put("array", List.of(1, List.of(2, Map.of("three", 3)), everyValue));

        var properties = new AMQP.BasicProperties.Builder().headers(headers).build();
        Delivery received = roundTrip(bytes("x"), properties);
        assertEquals(headers, plain(received.getProperties().getHeaders()));
    }

    @Test
    void byteArrayHeaderSurvives() throws Exception {
        byte[] value = {0, 1, (byte) 254, (byte) 255};
        var properties = new AMQP.BasicProperties.Builder().headers(Map.of("bytes", value)).build();
        Delivery received = roundTrip(bytes("x"), properties);
        assertArrayEquals(value, (byte[]) received.getProperties().getHeaders().get("bytes"));
    }

    @Test
    void everyBasicPropertySurvives() throws Exception {
        var properties = new AMQP.BasicProperties.Builder()
                .contentType("text/plain")
                .contentEncoding("gzip")
                .deliveryMode(2)
                .priority(7)
                .correlationId("correlation")
                .replyTo("reply")
                .expiration("60000")
                .messageId("message")
                .timestamp(new Date(1_700_000_000_000L))
                .type("type")
                .userId("guest")
                .appId("application")
                .clusterId("cluster")
                .build();
        assertEquals(properties, roundTrip(bytes("x"), properties).getProperties());
    }

    private Delivery roundTrip(byte[] body, AMQP.BasicProperties properties) throws Exception {
        try (Channel channel = channel()) {
            String queue = queue(channel);
            Inbox inbox = Inbox.consume(channel, queue, true);
            channel.basicPublish("", queue, properties, body);
            return inbox.next();
        }
    }

    /** Bytes that do not repeat, so that frames swapped or doubled show. */
    private static byte[] noise(int size) {
        byte[] body = new byte[size];
        new Random(size).nextBytes(body);
        return body;
    }

    /** The client reads strings as LongString; this gives the strings that were sent. */
    private static Object plain(Object value) {
        if (value instanceof LongString string) {
            return string.toString();
        } else if (value instanceof List<?> list) {
            List<Object> copy = new ArrayList<>();
            list.forEach(inner -> copy.add(plain(inner)));
            return copy;
        } else if (value instanceof Map<?, ?> map) {
            Map<Object, Object> copy = new HashMap<>();
            map.forEach((key, inner) -> copy.put(key, plain(inner)));
            return copy;
        }
        return value;
    }
}
