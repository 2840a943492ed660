package payload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// mode is one of Salt's three readers.
type mode uint8

const (
	modeNet  mode = iota // str and bin are the same: text if valid UTF-8, else bytes
	modeRaw              // str and bin stay bytes
	modeDisk             // bin is bytes; str is text if valid UTF-8
)

// how says in which form values are decoded.
type how struct {
	mode    mode
	shared  bool     // a text or byte string that makes up at least half of the input is not copied
	ordered bool     // every map is an OrderedMap
	fields  []string // fields of the outermost map whose maps are OrderedMap
}

// Extension types of Salt (salt/payload.py:dumps).
const (
	extDate     = 78
	extConstant = 79
)

// dateLayout is the content of extension 78. It has no zone.
const dateLayout = "20060102T15:04:05.000000"

// Unmarshal decodes one network payload with default limits, like salt/payload.py:loads. Bytes after the value are an
// error.
func Unmarshal(b []byte) (any, error) { return decodeAll(b, Limits{}, how{}) }

// UnmarshalLimits is like [Unmarshal], with the limits l.
func UnmarshalLimits(b []byte, l Limits) (any, error) { return decodeAll(b, l, how{}) }

// UnmarshalShared is like [UnmarshalLimits], but takes ownership of b: only the owner of the result may use or modify
// it afterwards. A text or byte string that takes up at least half of the input is a part of it, without a copy.
// Smaller ones are copied, so that they do not keep much more memory alive than their own size. Maps inside the named
// fields of the outermost map are [OrderedMap].
func UnmarshalShared(b []byte, l Limits, ordered ...string) (any, error) {
	return decodeAll(b, l, how{shared: true, fields: ordered})
}

// UnmarshalRaw decodes a network payload without converting byte strings to text, except for map keys. Salt reads
// replies with file data like this.
func UnmarshalRaw(b []byte, l Limits) (any, error) { return decodeAll(b, l, how{mode: modeRaw}) }

// UnmarshalDisk decodes data in the bin dialect: cache files, journal entries, events. There bin is bytes and str is
// text. Maps inside the named fields of the outermost map are [OrderedMap].
func UnmarshalDisk(b []byte, l Limits, ordered ...string) (any, error) {
	return decodeAll(b, l, how{mode: modeDisk, fields: ordered})
}

// UnmarshalDiskOrdered is like [UnmarshalDisk] with every map as an [OrderedMap].
func UnmarshalDiskOrdered(b []byte, l Limits) (any, error) {
	return decodeAll(b, l, how{mode: modeDisk, ordered: true})
}

// UnmarshalOrdered is like [UnmarshalLimits] with every map as an [OrderedMap], in the order in which it was packed.
func UnmarshalOrdered(b []byte, l Limits) (any, error) { return decodeAll(b, l, how{ordered: true}) }

func decodeAll(b []byte, l Limits, h how) (any, error) {
	l = l.orDefault()
	if int64(len(b)) > l.Bytes {
		return nil, fmt.Errorf("payload: %d bytes of input exceed %d: %w", len(b), l.Bytes, ErrLimit)
	}
	s := &source{buf: b, left: int64(len(b))}
	v, err := decodeOne(s, l, h)
	if err != nil {
		return nil, err
	}
	if s.left != 0 {
		return nil, fmt.Errorf("payload: %d bytes after the value", s.left)
	}
	return v, nil
}

func decodeOne(s *source, l Limits, h how) (any, error) {
	d := msgpack.GetDecoder()
	d.ResetReader(s)
	w := walker{d: d, s: s, how: h, elements: l.Elements, total: s.left}
	v, err := w.value(l.Depth)
	msgpack.PutDecoder(d)
	if err != nil {
		return nil, w.explain(err)
	}
	return v, nil
}

// A Reader decodes a stream of values that follow each other without any framing, as on TCP and on Salt's IPC sockets
// (salt/transport/frame.py). A value may arrive in any number of pieces. Byte strings become text when they are valid
// UTF-8. A Reader is not safe for concurrent use. After an error other than io.EOF the stream cannot be resumed.
type Reader struct {
	s *source
	l Limits
}

// NewReader returns a Reader of r with limits per value.
func NewReader(r io.Reader, l Limits) *Reader {
	return &Reader{s: &source{r: bufio.NewReaderSize(r, 512)}, l: l.orDefault()}
}

// Next returns the next value. The error is io.EOF only if the stream ended between two values, and
// io.ErrUnexpectedEOF (wrapped) if it ended inside one.
func (r *Reader) Next() (any, error) {
	if _, err := r.s.r.Peek(1); err != nil {
		return nil, err
	}
	r.s.left = r.l.Bytes
	return decodeOne(r.s, r.l, how{})
}

// source is the input of a decoder: a slice, or a stream with the number of bytes that may still be read.
// It implements io.Reader and io.ByteScanner, so that the msgpack decoder reads from it directly and never ahead.
type source struct {
	buf  []byte
	r    *bufio.Reader // nil: read from buf
	left int64
}

func (s *source) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	var n int
	var err error
	if s.r != nil {
		n, err = s.r.Read(p)
	} else {
		n = copy(p, s.buf[int64(len(s.buf))-s.left:])
	}
	s.left -= int64(n)
	return n, err
}

func (s *source) ReadByte() (byte, error) {
	if s.left <= 0 {
		return 0, io.EOF
	}
	if s.r != nil {
		c, err := s.r.ReadByte()
		if err == nil {
			s.left--
		}
		return c, err
	}
	c := s.buf[int64(len(s.buf))-s.left]
	s.left--
	return c, nil
}

func (s *source) UnreadByte() error {
	if s.r != nil {
		if err := s.r.UnreadByte(); err != nil {
			return err
		}
	}
	s.left++
	return nil
}

// take returns the next n bytes. From a slice they are a part of it; from a stream they are a new slice. n is not
// more than s.left. Memory for a stream grows with what has arrived, not with n.
func (s *source) take(n int) (b []byte, shared bool, err error) {
	if s.r == nil {
		at := int64(len(s.buf)) - s.left
		s.left -= int64(n)
		return s.buf[at : at+int64(n) : at+int64(n)], true, nil
	}
	const piece = 64 << 10
	b = make([]byte, min(n, piece))
	for at := 0; ; {
		k, err := io.ReadFull(s.r, b[at:])
		s.left -= int64(k)
		if err != nil {
			return nil, false, err
		}
		if at = len(b); at == n {
			return b, false, nil
		}
		grown := make([]byte, min(n, 2*at))
		copy(grown, b)
		b = grown
	}
}

// walker decodes one value. It makes all decisions; the library only reads codes, lengths and numbers.
type walker struct {
	how
	d        *msgpack.Decoder
	s        *source
	elements int   // how many more values are allowed
	pending  int64 // values that the open containers still need
	total    int64 // s.left at the start, for positions in errors
}

func (w *walker) explain(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if w.s.left <= 0 && w.s.r != nil && errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("value exceeds %d bytes: %w", w.total, ErrLimit)
	}
	return fmt.Errorf("payload: cannot decode value at byte %d: %w", w.total-w.s.left, err)
}

func (w *walker) value(depth int) (any, error) {
	if w.elements--; w.elements < 0 {
		return nil, fmt.Errorf("too many values: %w", ErrLimit)
	}
	c, err := w.d.PeekCode()
	if err != nil {
		return nil, err
	}
	switch {
	case msgpcode.IsFixedNum(c):
		return w.d.DecodeInt64()
	case msgpcode.IsString(c) || msgpcode.IsBin(c):
		b, shared, err := w.bytes()
		if err != nil {
			return nil, err
		}
		return w.text(b, shared, msgpcode.IsBin(c)), nil
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32:
		return w.mapping(depth)
	case msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32:
		return w.array(depth)
	case msgpcode.IsExt(c):
		return w.ext(depth)
	}
	return w.scalar(c)
}

func (w *walker) scalar(c byte) (any, error) {
	switch c {
	case msgpcode.Nil:
		return nil, w.d.DecodeNil()
	case msgpcode.True, msgpcode.False:
		return w.d.DecodeBool()
	case msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64,
		msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32:
		return w.d.DecodeInt64()
	case msgpcode.Uint64:
		u, err := w.d.DecodeUint64()
		if err != nil || u > math.MaxInt64 {
			return u, err
		}
		return int64(u), nil
	case msgpcode.Float, msgpcode.Double:
		return w.d.DecodeFloat64()
	}
	return nil, fmt.Errorf("code 0x%02x is not used in msgpack", c)
}

// bytes reads the head and content of a str or bin.
func (w *walker) bytes() (b []byte, shared bool, err error) {
	n, err := w.d.DecodeBytesLen()
	if err != nil {
		return nil, false, err
	}
	return w.content(n)
}

func (w *walker) content(n int) (b []byte, shared bool, err error) {
	if n < 0 || int64(n) > w.s.left-w.pending {
		return nil, false, w.short(fmt.Sprintf("%d bytes announced", uint32(n)))
	}
	return w.s.take(n)
}

// short returns the error for a length that exceeds the rest of the input.
func (w *walker) short(what string) error {
	if w.s.r != nil {
		return fmt.Errorf("%s exceed the limit: %w", what, ErrLimit)
	}
	return fmt.Errorf("%s, %d bytes left: %w", what, w.s.left, io.ErrUnexpectedEOF)
}

func (w *walker) text(b []byte, shared, bin bool) any {
	if w.mode == modeNet || (w.mode == modeDisk && !bin) {
		if s := intern(b); s != nil {
			return s
		}
		if utf8.Valid(b) {
			if shared && w.mostly(b) {
				return unsafe.String(unsafe.SliceData(b), len(b)) // the owner of the result is the only user of the input
			}
			return string(b)
		}
	}
	if shared && !w.mostly(b) {
		return append(make([]byte, 0, len(b)), b...)
	}
	return b
}

// mostly reports whether b becomes a part of the result without a copy.
func (w *walker) mostly(b []byte) bool { return w.shared && len(b) > 0 && int64(len(b)) >= w.total/2 }

// open checks that a container of n members, each of at least one byte, may be read. Every announced member counts as
// reserved until it is read, so the sum of what all containers announce never exceeds the input.
func (w *walker) open(n, depth int) error {
	if depth <= 0 {
		return fmt.Errorf("containers nested too deeply: %w", ErrLimit)
	}
	if n < 0 || int64(n) > w.s.left-w.pending {
		return w.short(fmt.Sprintf("%d members announced", uint32(n))) // negative where an int has 32 bits
	}
	if n > w.elements {
		return fmt.Errorf("%d members announced, %d allowed: %w", n, w.elements, ErrLimit)
	}
	w.pending += int64(n)
	return nil
}

// room returns the capacity to allocate for n announced members. The bytes of a slice are known to be present; those
// of a stream may never arrive.
func (w *walker) room(n int) int {
	if w.s.r != nil {
		return min(n, 16)
	}
	return n
}

func (w *walker) array(depth int) (any, error) {
	n, err := w.d.DecodeArrayLen()
	if err != nil {
		return nil, err
	}
	if err := w.open(n, depth); err != nil {
		return nil, err
	}
	out := make([]any, 0, w.room(n))
	for range n {
		w.pending--
		v, err := w.value(depth - 1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (w *walker) mapping(depth int) (any, error) {
	n, err := w.d.DecodeMapLen()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > math.MaxInt32 {
		return nil, w.short(fmt.Sprintf("%d pairs announced", n))
	}
	if err := w.open(2*n, depth); err != nil {
		return nil, err
	}
	if w.ordered {
		return w.pairs(n, depth)
	}
	fields := w.fields
	w.fields = nil // they apply to this map only
	out := make(map[string]any, w.room(n))
	for i := range n {
		key, text, isText, err := w.key()
		if err != nil {
			return nil, err
		}
		if !isText {
			return w.mixed(out, key, n-i, depth)
		}
		w.pending--
		w.ordered = slices.Contains(fields, text)
		v, err := w.value(depth - 1)
		w.ordered = false
		if err != nil {
			return nil, err
		}
		out[text] = v
	}
	return out, nil
}

// pairs decodes a map as an OrderedMap.
func (w *walker) pairs(n, depth int) (any, error) {
	out := make(OrderedMap, 0, w.room(n))
	for range n {
		key, text, isText, err := w.key()
		if err != nil {
			return nil, err
		}
		if isText {
			key = text
		}
		w.pending--
		v, err := w.value(depth - 1)
		if err != nil {
			return nil, err
		}
		out = append(out, Pair{key, v})
	}
	return out, nil
}

// mixed continues to decode a map at its first key that is not text. The key has been read, its value has not.
func (w *walker) mixed(sofar map[string]any, key any, n, depth int) (any, error) {
	out := make(map[any]any, len(sofar)+w.room(n))
	for k, v := range sofar {
		out[k] = v
	}
	for {
		w.pending--
		v, err := w.value(depth - 1)
		if err != nil {
			return nil, err
		}
		out[key] = v
		if n--; n == 0 {
			return out, nil
		}
		var text string
		var isText bool
		if key, text, isText, err = w.key(); err != nil {
			return nil, err
		}
		if isText {
			key = text
		}
	}
}

// key reads a map key, which may be any scalar. Keys that are text or bytes are returned as text.
func (w *walker) key() (key any, text string, isText bool, err error) {
	w.pending--
	if w.elements--; w.elements < 0 {
		return nil, "", false, fmt.Errorf("too many values: %w", ErrLimit)
	}
	c, err := w.d.PeekCode()
	if err != nil {
		return nil, "", false, err
	}
	switch {
	case msgpcode.IsString(c) || msgpcode.IsBin(c):
		b, _, err := w.bytes()
		if err != nil {
			return nil, "", false, err
		}
		if s, ok := intern(b).(string); ok {
			return nil, s, true, nil
		}
		return nil, string(b), true, nil
	case msgpcode.IsFixedMap(c) || c == msgpcode.Map16 || c == msgpcode.Map32,
		msgpcode.IsFixedArray(c) || c == msgpcode.Array16 || c == msgpcode.Array32, msgpcode.IsExt(c):
		return nil, "", false, errors.New("map key is not a scalar")
	case msgpcode.IsFixedNum(c):
		key, err = w.d.DecodeInt64()
	default:
		key, err = w.scalar(c)
	}
	if f, ok := key.(float64); ok && f != f {
		// NaN does not equal itself, so it could be added any number of times and never be looked up.
		return nil, "", false, errors.New("map key is not a number")
	}
	return key, "", false, err
}

func (w *walker) ext(depth int) (any, error) {
	id, n, err := w.d.DecodeExtHeader()
	if err != nil {
		return nil, err
	}
	b, shared, err := w.content(n)
	if err != nil {
		return nil, err
	}
	switch id {
	case extDate:
		t, err := time.Parse(dateLayout, string(b))
		if err != nil || t.Year() < 1 {
			return nil, fmt.Errorf("date %.40q is not YYYYmmddTHH:MM:SS.ffffff", b)
		}
		return t, nil
	case extConstant:
		return w.constant(b, depth)
	}
	return w.text(b, shared, true), nil
}

// constant decodes the packed pair in an extension 79, within the remaining limits.
func (w *walker) constant(b []byte, depth int) (any, error) {
	if depth <= 1 {
		return nil, fmt.Errorf("containers nested too deeply: %w", ErrLimit)
	}
	l := Limits{Depth: depth - 1, Elements: max(w.elements, 1), Bytes: int64(len(b)) + 1}
	s := &source{buf: b, left: int64(len(b))}
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	d.ResetReader(s)
	inner := walker{d: d, s: s, elements: l.Elements, total: s.left}
	v, err := inner.value(l.Depth)
	if err != nil {
		return nil, inner.explain(err)
	}
	w.elements -= l.Elements - inner.elements
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 || s.left != 0 {
		return nil, errors.New("constant is not a name and a value")
	}
	name, ok := pair[0].(string)
	if !ok {
		return nil, errors.New("constant has no name")
	}
	return Constant{Name: name, Value: pair[1]}, nil
}
