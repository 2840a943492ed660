package protocol

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/brine-salt/brine/protocol/payload"
)

// eventBreak separates the tag of an event from its data. A tag cannot contain it.
const eventBreak = "\n\n"

// PackEvent returns the body of an event: the tag, a blank line, and the data packed so that bytes and strings stay
// apart (salt/utils/event.py:SaltEvent.pack). It adds nothing; the sender sets "_stamp", see [Stamp].
func PackEvent(tag string, data map[string]any) ([]byte, error) {
	if tag == "" || strings.Contains(tag, eventBreak) || !utf8.ValidString(tag) {
		return nil, malformed("event tag %.80q", tag)
	}
	packed, err := payload.MarshalBin(data)
	if err != nil {
		return nil, fmt.Errorf("cannot pack event %q: %w", tag, err)
	}
	b := make([]byte, 0, len(tag)+len(eventBreak)+len(packed))
	return append(append(append(b, tag...), eventBreak...), packed...), nil
}

// UnpackEvent reads the body of an event. The first blank line separates tag and data. data must be a map; maps inside it
// are [payload.OrderedMap].
func UnpackEvent(b []byte) (tag string, data map[string]any, err error) {
	head, rest, ok := bytes.Cut(b, []byte(eventBreak))
	if !ok || len(head) == 0 || !utf8.Valid(head) {
		return "", nil, malformed("event: it has no tag")
	}
	v, err := payload.UnmarshalDiskOrdered(rest, payload.Limits{})
	if err != nil {
		return "", nil, fmt.Errorf("%w event %.80q: %w", ErrMalformed, head, err)
	}
	inOrder, ok := v.(payload.OrderedMap)
	if !ok || slices.ContainsFunc(inOrder, func(p payload.Pair) bool { _, text := p.Key.(string); return !text }) {
		return "", nil, malformed("event %.80q: data is %T, not a map with names", head, v)
	}
	return string(head), inOrder.Map(), nil
}

// FrameIPC wraps a body in the frame of Salt's local sockets: a map of an empty head and the body, which has type
// bin because some readers decode strings (salt/transport/frame.py:frame_msg_ipc). The frame has no length prefix;
// read it with payload.Reader and [UnframeIPC].
func FrameIPC(body []byte) ([]byte, error) {
	if body == nil {
		body = []byte{}
	}
	return payload.MarshalBin(payload.OrderedMap{{Key: "head", Value: map[string]any{}}, {Key: "body", Value: body}})
}

// UnframeIPC returns the body of a frame that a payload.Reader has read.
func UnframeIPC(v any) ([]byte, error) {
	m, ok := payload.Map(v)
	if !ok {
		return nil, malformed("frame: it is %T, not a map", v)
	}
	body, ok := payload.Bytes(m["body"])
	if !ok {
		return nil, malformed("frame: body is %T", m["body"])
	}
	return body, nil
}

// Tagify joins "salt" and the non-empty parts with "/" (salt/utils/event.py:tagify).
func Tagify(parts ...string) string {
	var b strings.Builder
	b.WriteString("salt")
	for _, p := range parts {
		if p != "" {
			b.WriteByte('/')
			b.WriteString(p)
		}
	}
	return b.String()
}

// Stamp returns t as the "_stamp" of an event: UTC, ISO 8601 with microseconds and no zone. Salt before 3008 writes
// this form, and all versions read it.
func Stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000") }
