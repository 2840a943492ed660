package payload_test

import (
	"bytes"
	"testing"

	"github.com/brine-salt/brine/protocol/internal/vectors"
	"github.com/brine-salt/brine/protocol/payload"
)

func seeds(f *testing.F) {
	var v msgpackVectors
	vectors.Load(f, "common/msgpack.json", &v)
	for _, c := range v.Encode {
		f.Add(c.Wire.Bytes)
		f.Add(c.Bin.Bytes)
	}
	for _, c := range v.Decode {
		f.Add(c.Bytes)
	}
	for _, c := range hostile {
		if len(c.in) < 4096 {
			f.Add(c.in)
		}
	}
	f.Add([]byte("\x92\xc7\x04\x4f\x92\xa1n\x01\x82\xa1k\xc4\x01\xff\xc3\xca\x3f\xc0\x00\x00"))
}

// FuzzUnmarshal: no input panics, allocates beyond the bound, or decodes into a value that changes when it is packed
// and decoded again, in both dialects.
func FuzzUnmarshal(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		before := allocated()
		v, err := payload.Unmarshal(in)
		if grown := allocated() - before; grown > bound(in) {
			t.Fatalf("allocated %d bytes for %d", grown, len(in))
		}
		raw, rawErr := payload.UnmarshalRaw(in, payload.Limits{})
		disk, diskErr := payload.UnmarshalDisk(in, payload.Limits{})
		if (err == nil) != (rawErr == nil) || (err == nil) != (diskErr == nil) {
			t.Fatalf("readers disagree: %v, %v, %v", err, rawErr, diskErr)
		}
		streamed, streamErr := payload.NewReader(bytes.NewReader(in), payload.Limits{}).Next()
		if err == nil && streamErr != nil {
			t.Fatalf("a stream fails where a slice does not: %v", streamErr)
		}
		if err != nil {
			return
		}
		again(t, v, payload.Marshal, payload.Unmarshal)
		again(t, streamed, payload.Marshal, payload.Unmarshal)
		again(t, raw, payload.MarshalBin, func(b []byte) (any, error) { return payload.UnmarshalRaw(b, payload.Limits{}) })
		again(t, disk, payload.MarshalBin, func(b []byte) (any, error) { return payload.UnmarshalDisk(b, payload.Limits{}) })
	})
}

// again packs v, decodes that and packs it again. Both packings must be equal.
func again(t *testing.T, v any, pack func(any) ([]byte, error), read func([]byte) (any, error)) {
	t.Helper()
	first, err := pack(v)
	if err != nil {
		t.Fatalf("cannot pack what was decoded: %v", err)
	}
	back, err := read(first)
	if err != nil {
		t.Fatalf("cannot read % x: %v", first, err)
	}
	second, err := pack(back)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("% x became % x", first, second)
	}
}
