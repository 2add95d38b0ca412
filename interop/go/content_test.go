package interop

import (
	"bytes"
	"math"
	"math/rand"
	"reflect"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestBodyOf1MiBSpansFramesAndArrivesByteForByte(t *testing.T) {
	connection := connect(t)
	if limit := connection.Config.FrameSize; limit == 0 || limit >= 1<<20 {
		t.Fatalf("frame_max %d: the body must not fit a frame", limit)
	}
	body := noise(1 << 20)
	sameBytes(t, roundTrip(t, connection, amqp.Publishing{Body: body}).Body, body)
}

func TestBodiesAtTheEdgeOfAFrameArriveByteForByte(t *testing.T) {
	connection := connect(t)
	full := connection.Config.FrameSize - 8 // type, channel, size and end marker
	for _, size := range []int{full - 1, full, full + 1, 2 * full} {
		body := noise(size)
		sameBytes(t, roundTrip(t, connection, amqp.Publishing{Body: body}).Body, body)
	}
}

func TestEmptyBodyArrivesEmptyAndTheNextMessageIsIntact(t *testing.T) {
	connection := connect(t)
	equal(t, "length", len(roundTrip(t, connection, amqp.Publishing{}).Body), 0)
	next := roundTrip(t, connection, amqp.Publishing{Body: []byte("next")})
	equal(t, "body", string(next.Body), "next")
}

func TestEveryHeaderValueTypeSurvivesNestedToo(t *testing.T) {
	values := amqp.Table{
		"string":      "Grüße 🐇",
		"emptyString": "",
		"bytes":       []byte{0, 1, 254, 255},
		"yes":         true,
		"no":          false,
		"nothing":     nil,
		"int8":        int8(math.MinInt8),
		"uint8":       byte(math.MaxUint8),
		"int16":       int16(math.MinInt16),
		"uint16":      uint16(math.MaxUint16),
		"int32":       int32(math.MinInt32),
		"uint32":      uint32(math.MaxUint32),
		"int64":       int64(math.MinInt64),
		"float":       float32(1.5),
		"double":      math.Pi,
		"timestamp":   time.Unix(1_700_000_000, 0),
		"decimal":     amqp.Decimal{Scale: 2, Value: 12345},
	}
	array := []any{}
	for _, value := range values {
		array = append(array, value)
	}
	deeper := []any{int32(1), []any{amqp.Table{"two": int32(2)}}, "three"}
	headers := amqp.Table{
		"emptyTable": amqp.Table{},
		"table":      amqp.Table{"table": amqp.Table{"array": deeper}},
		"array":      array,
		"values":     values,
	}
	for name, value := range values {
		headers[name] = value
	}
	received := roundTrip(t, connect(t), amqp.Publishing{Headers: headers}).Headers
	equal(t, "number of headers", len(received), len(headers))
	for name, value := range headers {
		if !reflect.DeepEqual(received[name], value) {
			t.Errorf("%s: got %#v, want %#v", name, received[name], value)
		}
	}
}

func TestEveryBasicPropertySurvives(t *testing.T) {
	received := roundTrip(t, connect(t), amqp.Publishing{
		ContentType:     "text/plain",
		ContentEncoding: "gzip",
		DeliveryMode:    amqp.Persistent,
		Priority:        7,
		CorrelationId:   "correlation",
		ReplyTo:         "reply",
		Expiration:      "60000",
		MessageId:       "message",
		Timestamp:       time.Unix(1_700_000_000, 0),
		Type:            "type",
		UserId:          "guest",
		AppId:           "application",
	})
	equal(t, "content type", received.ContentType, "text/plain")
	equal(t, "content encoding", received.ContentEncoding, "gzip")
	equal(t, "delivery mode", received.DeliveryMode, amqp.Persistent)
	equal(t, "priority", received.Priority, 7)
	equal(t, "correlation id", received.CorrelationId, "correlation")
	equal(t, "reply to", received.ReplyTo, "reply")
	equal(t, "expiration", received.Expiration, "60000")
	equal(t, "message id", received.MessageId, "message")
	equal(t, "timestamp", received.Timestamp.Unix(), 1_700_000_000)
	equal(t, "type", received.Type, "type")
	equal(t, "user id", received.UserId, "guest")
	equal(t, "application id", received.AppId, "application")
}

func roundTrip(t *testing.T, connection *amqp.Connection, message amqp.Publishing) amqp.Delivery {
	t.Helper()
	channel := openChannel(t, connection)
	queue := declareQueue(t, channel)
	deliveries := consume(t, channel, queue, true)
	send(t, channel, "", queue, message)
	delivery := receive(t, deliveries)
	must(t, channel.Close())
	return delivery
}

// noise gives bytes that do not repeat, so that frames swapped or doubled show.
func noise(size int) []byte {
	body := make([]byte, size)
	rand.New(rand.NewSource(int64(size))).Read(body)
	return body
}

func sameBytes(t *testing.T, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Fatalf("body differs: got %d bytes, want %d", len(got), len(want))
	}
}
