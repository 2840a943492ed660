package serializers

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/brine-salt/brine/modules/pyobj"
)

// TestRoundTrip: serialized data can be deserialized. The differential tests of slsutil and file.serialize compare
// the texts.
func TestRoundTrip(t *testing.T) {
	data := pyobj.NewDict("s", pyobj.NewDict("a", "x y", "b", "50%%\nmore"), "t", &pyobj.Dict{})
	all := pyobj.NewDict("d", data, "n", pyobj.NewList(int64(-1), int64(1<<40), int64(-1<<40), 1.5, true, false, []byte("\x00\xff"), "ü<&>"))
	binary := pyobj.NewDict("fmt", "FMT_BINARY")
	long := pyobj.NewList()
	for i := range 300 {
		long.Items = append(long.Items, pyobj.Str(int64(i)), int64(i)<<(i%60))
	}
	for _, c := range []struct {
		format string
		v      any
		opts   *pyobj.Dict
	}{
		{"configparser", pyobj.NewDict("s", pyobj.NewDict("a", "x y", "b", "one\ntwo"), "t", &pyobj.Dict{}), nil},
		{"keyvalue", pyobj.NewDict("a", "1", "b", "x=y"), nil},
		{"json", data, nil}, {"yaml", data, nil}, {"plist", all, nil}, {"msgpack", all, nil}, {"msgpack", pyobj.NewList(nil, int64(1)<<62, ""), nil},
		{"plist", all, binary}, {"plist", long, binary}, {"plist", pyobj.NewList(all, all, nil, ""), binary},
	} {
		if c.opts == nil {
			c.opts = &pyobj.Dict{}
		}
		out, err := Serialize(c.format, c.v, c.opts)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		b, ok := out.([]byte)
		if !ok {
			b = []byte(out.(string))
		}
		back, err := Deserialize(c.format, "", b, &pyobj.Dict{})
		if err != nil || pyobj.Repr(back) != pyobj.Repr(c.v) {
			t.Errorf("%s: %q gives %s, %v; want %s", c.format, b, pyobj.Repr(back), err, pyobj.Repr(c.v))
		}
	}
}

// TestHostileInput: neither lengths in the input nor its nesting determine how much memory is used.
func TestHostileInput(t *testing.T) {
	for _, c := range []struct{ format, in string }{
		{"msgpack", "\xdd\xff\xff\xff\xff"}, {"msgpack", "\xdf\xff\xff\xff\xff"}, {"msgpack", "\xdb\xff\xff\xff\xff"}, {"msgpack", "\xc6\xff\xff\xff\xff"},
		{"msgpack", string(bytes.Repeat([]byte{0x91}, 100_000))}, {"msgpack", "\xd9\x01"}, {"msgpack", ""}, {"msgpack", "\xc1"}, {"msgpack", "\x01\x01"},
		{"msgpack", "\x81\x01\x01"}, {"msgpack", "\xa1\xff"},
		{"plist", string(bytes.Repeat([]byte("<array>"), 10_000))}, {"plist", "<plist><nothing/></plist>"}, {"plist", "<plist><data>*</data></plist>"},
		{"configparser", "[s]\na=%(a)s\n"}, {"plist", "bplist00"}, {"plist", binaryOf("\xa1\x00", 1)}, {"plist", binaryOf("\xa1\x01", 1)}, {"plist", binaryOf("\x5f\x13\xff\xff\xff\xff\xff\xff\xff\xff", 1)},
		{"plist", binaryOf("\xaf\x13\x7f\xff\xff\xff\xff\xff\xff\xff", 1)}, {"plist", binaryOf("\x08", 255)}, {"plist", binaryOf("\x33", 1)}, {"plist", binaryOf("\x51\xff", 1)}, {"plist", binaryOf("\xff", 1)},
	} {
		if v, err := Deserialize(c.format, "", []byte(c.in), &pyobj.Dict{}); err == nil {
			t.Errorf("%s: %.20q gives %v", c.format, c.in, v)
		}
	}
	if _, err := Serialize("json", "x", pyobj.NewDict("object_hook", int64(1))); err == nil {
		t.Error("an unknown option is taken")
	}
}

// TestRepeatedText: a text may occur at many places of a binary property list, but the total is limited.
func TestRepeatedText(t *testing.T) {
	const size, times = 8 << 20, 14
	list := "\xae" + strings.Repeat("\x01", times)
	text := "\x5f\x12" + string([]byte{size >> 24, size >> 16 & 0xff, size >> 8 & 0xff, size & 0xff}) + strings.Repeat("x", size)
	table := uint64(len("bplist00") + len(list) + len(text))
	b := []byte("bplist00" + list + text)
	for _, n := range []uint64{8, uint64(8 + len(list))} { // the objects' offsets
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(b, 0, 0, 0, 0, 0, 0, 8, 1)
	for _, n := range []uint64{2, 0, table} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	if _, err := Deserialize("plist", "", b, &pyobj.Dict{}); err == nil || !strings.Contains(err.Error(), "repeats too much") {
		t.Errorf("%d bytes, %d times: %v", size, times, err)
	}
	b[8] = 0xa3 // an array of three
	if v, err := Deserialize("plist", "", b, &pyobj.Dict{}); err != nil || len(v.(*pyobj.List).Items) != 3 {
		t.Error(err)
	}
}

// binaryOf returns a binary property list with one object whose trailer claims a number of objects.
func binaryOf(object string, objects byte) string {
	return "bplist00" + object + "\x08" + "\x00\x00\x00\x00\x00\x00\x01\x01" + "\x00\x00\x00\x00\x00\x00\x00" + string([]byte{objects}) + strings.Repeat("\x00", 15) + string(rune(8+len(object)))
}

func FuzzDeserialize(f *testing.F) {
	f.Add("msgpack", []byte{0x82, 0xa1, 'a', 0x91, 0xcb})
	f.Add("plist", []byte("bplist00\xd1\x01\x02Qa\xa1\x00\x08\x0b\x0d\x00\x00\x00\x00\x00\x00\x01\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0f"))
	f.Add("plist", []byte("<plist><dict><key>a</key><array><true/></array></dict></plist>"))
	f.Add("configparser", []byte("[s]\na = %(b)s\nb: 1\n"))
	f.Fuzz(func(t *testing.T, format string, in []byte) {
		_, _ = Deserialize(format, "", in, &pyobj.Dict{})
	})
}
