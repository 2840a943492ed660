package payload_test

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/protocol/internal/vectors"
	"github.com/brine-salt/brine/protocol/payload"
)

// reading is the result of one of Salt's three readers.
type reading struct {
	Value vectors.Value
	Error string
}

func (r *reading) UnmarshalJSON(b []byte) error {
	var e struct {
		T     string `json:"t"`
		V     any    `json:"v"`
		Error string `json:"error"`
	}
	if err := unmarshalJSON(b, &e); err != nil {
		return err
	}
	r.Error = e.Error
	return unmarshalJSON(b, &r.Value)
}

type readings struct {
	Bytes []byte  `json:"bytes"`
	Error string  `json:"error"`
	Loads reading `json:"loads"`
	Raw   reading `json:"loads_raw"`
	UTF8  reading `json:"loads_utf8"`
}

type msgpackVectors struct {
	Encode []struct {
		Name  string        `json:"name"`
		Value vectors.Value `json:"value"`
		Wire  readings      `json:"wire"`
		Bin   readings      `json:"bin"`
	} `json:"encode"`
	Decode []struct {
		Name string `json:"name"`
		readings
	} `json:"decode"`
}

func (r readings) check(t *testing.T) {
	t.Helper()
	for _, reader := range []struct {
		name string
		want reading
		read func([]byte) (any, error)
	}{
		{"loads", r.Loads, payload.Unmarshal},
		{"loads_raw", r.Raw, func(b []byte) (any, error) { return payload.UnmarshalRaw(b, payload.Limits{}) }},
		{"loads_utf8", r.UTF8, func(b []byte) (any, error) { return payload.UnmarshalDisk(b, payload.Limits{}) }},
	} {
		got, err := reader.read(r.Bytes)
		switch {
		case reader.want.Error != "":
			if err == nil {
				t.Errorf("%s: got %v, Salt fails with %s", reader.name, got, reader.want.Error)
			}
		case err != nil:
			t.Errorf("%s: %v", reader.name, err)
		case reader.want.Value.T == "other":
			// For a timestamp Python returns an object of its library; ours returns the content of the extension.
			if b, ok := payload.Bytes(got); !ok || !bytes.Equal(b, r.Bytes[2:]) {
				t.Errorf("%s: got %v", reader.name, got)
			}
		default:
			want := reader.want.Value.Go(t)
			if reader.name == "loads_utf8" && fellBack(want) {
				// If a str is not UTF-8, Python reads the whole value again with every str as bytes. Ours decides for
				// each str.
				want = asText(want)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s: (-Salt +ours)\n%s", reader.name, d)
			}
		}
	}
}

// fellBack reports whether a list has both bytes that are valid UTF-8 and bytes that are not.
func fellBack(v any) bool {
	list, _ := v.([]any)
	var text, binary bool
	for _, m := range list {
		if b, ok := m.([]byte); ok {
			if utf8.Valid(b) {
				text = true
			} else {
				binary = true
			}
		}
	}
	return text && binary
}

func asText(v any) any {
	out := []any{}
	for _, m := range v.([]any) {
		if s, ok := payload.Text(m); ok {
			m = s
		}
		out = append(out, m)
	}
	return out
}

func TestVectorsEncode(t *testing.T) {
	var v msgpackVectors
	vectors.Load(t, "common/msgpack.json", &v)
	if len(v.Encode) < 30 {
		t.Fatalf("%d vectors", len(v.Encode))
	}
	for _, c := range v.Encode {
		t.Run(c.Name, func(t *testing.T) {
			in := c.Value.Ordered(t)
			for _, d := range []struct {
				name string
				want readings
				pack func(any) ([]byte, error)
			}{{"wire", c.Wire, payload.Marshal}, {"bin", c.Bin, payload.MarshalBin}} {
				got, err := d.pack(in)
				if err != nil || d.want.Error != "" {
					t.Fatalf("%s: %v, Salt: %q", d.name, err, d.want.Error)
				}
				if !bytes.Equal(got, d.want.Bytes) {
					t.Errorf("%s: % x, Salt: % x", d.name, got, d.want.Bytes)
				}
				d.want.check(t)
			}
		})
	}
}

func TestVectorsDecode(t *testing.T) {
	var v msgpackVectors
	vectors.Load(t, "common/msgpack.json", &v)
	if len(v.Decode) < 13 {
		t.Fatalf("%d vectors", len(v.Decode))
	}
	for _, c := range v.Decode {
		t.Run(c.Name, func(t *testing.T) { c.check(t) })
	}
}

// TestVectorsTransport covers the framing that TCP and WebSocket add to an envelope.
func TestVectorsTransport(t *testing.T) {
	var v struct {
		Request struct {
			Mid   string        `json:"mid"`
			Body  vectors.Value `json:"body"`
			Frame []byte        `json:"frame"`
		} `json:"tcp_request"`
		ReplyBytes   []byte `json:"tcp_reply_bytes"`
		ReplyText    []byte `json:"tcp_reply_text"`
		PublishBytes []byte `json:"tcp_publish_body_bytes"`
		PublishMap   []byte `json:"tcp_publish_body_map"`
		WSRequest    []byte `json:"ws_request"`
		WSPublish    []byte `json:"ws_publish"`
		BadLoad      []byte `json:"bad_load_reply"`
		Undecodable  []byte `json:"undecodable_request_reply"`
	}
	vectors.Load(t, "common/transport.json", &v)
	body := v.Request.Body.Ordered(t)
	packed, err := payload.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	head := payload.OrderedMap{{Key: "mid", Value: v.Request.Mid}}
	frame := func(head, body any) any {
		return payload.OrderedMap{{Key: "head", Value: head}, {Key: "body", Value: body}}
	}
	none := payload.OrderedMap{}
	for _, c := range []struct {
		name  string
		want  []byte
		value any
		pack  func(any) ([]byte, error)
	}{
		{"tcp request", v.Request.Frame, frame(head, body), payload.MarshalBin},
		{"tcp reply bytes", v.ReplyBytes, frame(head, []byte{0xfe, 0xff}), payload.MarshalBin},
		{"tcp reply text", v.ReplyText, frame(head, "bad load"), payload.MarshalBin},
		{"tcp publish bytes", v.PublishBytes, frame(none, packed), payload.MarshalBin},
		{"tcp publish map", v.PublishMap, frame(none, body), payload.MarshalBin},
		{"ws request", v.WSRequest, body, payload.Marshal},
		{"ws publish", v.WSPublish, packed, payload.MarshalBin},
		{"bad load", v.BadLoad, "bad load", payload.Marshal},
		{"undecodable", v.Undecodable, map[string]any{"msg": "bad load"}, payload.Marshal},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.pack(c.value)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, c.want) {
				t.Errorf("% x, Salt: % x", got, c.want)
			}
		})
	}
	r := payload.NewReader(bytes.NewReader(append(append([]byte{}, v.PublishBytes...), v.PublishMap...)), payload.Limits{})
	for i, want := range []any{string(packed), v.Request.Body.Go(t)} {
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		m, _ := payload.Map(got)
		if i == 0 {
			b, _ := payload.Bytes(m["body"])
			m["body"] = string(b)
		}
		if d := cmp.Diff(want, m["body"]); d != "" {
			t.Errorf("frame %d: %s", i, d)
		}
	}
}
