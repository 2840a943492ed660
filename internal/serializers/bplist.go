package serializers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/brine-salt/brine/modules/pyobj"
)

const (
	bplistHead    = "bplist00"
	bplistTrailer = 32
	// maxPlistValues limits the values in a binary property list, since an object may occur in many places.
	maxPlistValues = 1 << 20
	// maxPlistRepeats limits how much longer than the list its texts and bytes may be in total, for the same reason.
	maxPlistRepeats = 64 << 20
)

// bplist writes a binary property list as Python's plistlib does: equal scalars are one object, and objects are in
// the order of their first occurrence.
type bplist struct {
	plistWriter
	objects  []any
	scalars  map[any]int
	others   map[any]int // collections and None
	refSize  int
	nowhere  int // number of tuples, which have no identity
	contents map[int][]int
}

// writeBinaryPlist returns a property list in the binary format.
func writeBinaryPlist(v any, w plistWriter) ([]byte, error) {
	p := &bplist{plistWriter: w, scalars: map[any]int{}, others: map[any]int{}, contents: map[int][]int{}}
	if _, err := p.flatten(v, 0); err != nil {
		return nil, err
	}
	p.refSize = sizeOf(uint64(len(p.objects)))
	b := []byte(bplistHead)
	offsets := make([]uint64, len(p.objects))
	var err error
	for i, o := range p.objects {
		offsets[i] = uint64(len(b))
		if b, err = p.object(b, i, o); err != nil {
			return nil, err
		}
	}
	table := uint64(len(b))
	size := sizeOf(table)
	for _, o := range offsets {
		b = number(b, o, size)
	}
	b = append(b, 0, 0, 0, 0, 0, 0, byte(size), byte(p.refSize))
	for _, n := range []uint64{uint64(len(p.objects)), 0, table} {
		b = number(b, n, 8)
	}
	return b, nil
}

// flatten assigns a number to every value, by which the file refers to it.
func (p *bplist) flatten(v any, depth int) (int, error) {
	if depth > maxNesting {
		return 0, errors.New("maximum recursion depth exceeded")
	}
	table, id := p.others, v
	switch x := v.(type) {
	case nil, *pyobj.Dict, *pyobj.List:
	case bool: // Python distinguishes True and 1 by their types
		table, id = p.scalars, [2]any{"bool", x}
	case pyobj.Markup:
		v, table, id = string(x), p.scalars, string(x)
	case []byte:
		table, id = p.scalars, [2]any{"bytes", string(x)}
	case int:
		v, table, id = int64(x), p.scalars, int64(x)
	case uint64:
		v = new(big.Int).SetUint64(x)
		table, id = p.scalars, [2]any{"big", v.(*big.Int).String()}
	case *big.Int:
		table, id = p.scalars, [2]any{"big", x.String()}
	case string, int64, float64:
		table = p.scalars
	case pyobj.Tuple:
		p.nowhere++
		id = [2]any{"tuple", p.nowhere}
	default:
		return 0, fmt.Errorf("%s", pyobj.Str(v))
	}
	if n, ok := table[id]; ok {
		return n, nil
	}
	n := len(p.objects)
	table[id] = n
	p.objects = append(p.objects, v)
	var members []any
	switch v := v.(type) {
	case *pyobj.Dict:
		keys, err := p.keys(v)
		if err != nil {
			return 0, err
		}
		for _, k := range keys {
			members = append(members, k)
		}
		for _, k := range keys {
			members = append(members, v.Value(k))
		}
	case *pyobj.List:
		members = v.Items
	case pyobj.Tuple:
		members = v
	}
	refs := make([]int, len(members))
	for i, x := range members {
		var err error
		if refs[i], err = p.flatten(x, depth+1); err != nil {
			return 0, err
		}
	}
	p.contents[n] = refs
	return n, nil
}

func (p *bplist) object(b []byte, n int, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, 0), nil
	case bool:
		if v {
			return append(b, 9), nil
		}
		return append(b, 8), nil
	case int64:
		if v < 0 {
			return number(append(b, 0x13), uint64(v), 8), nil
		}
		return integer(b, uint64(v)), nil
	case *big.Int:
		if !v.IsUint64() {
			return nil, errors.New(v.String())
		}
		return number(append(b, 0x14, 0, 0, 0, 0, 0, 0, 0, 0), v.Uint64(), 8), nil
	case float64:
		return number(append(b, 0x23), math.Float64bits(v), 8), nil
	case []byte:
		return append(head(b, 0x40, len(v)), v...), nil
	case string:
		if !strings.ContainsFunc(v, func(r rune) bool { return r > 127 }) {
			return append(head(b, 0x50, len(v)), v...), nil
		}
		units := utf16.Encode([]rune(v))
		b = head(b, 0x60, len(units))
		for _, u := range units {
			b = binary.BigEndian.AppendUint16(b, u)
		}
		return b, nil
	}
	refs := p.contents[n]
	if _, ok := v.(*pyobj.Dict); ok {
		b = head(b, 0xD0, len(refs)/2)
	} else {
		b = head(b, 0xA0, len(refs))
	}
	for _, r := range refs {
		b = number(b, uint64(r), p.refSize)
	}
	return b, nil
}

// sizeOf returns the number of bytes that a number needs.
func sizeOf(n uint64) int {
	switch {
	case n < 1<<8:
		return 1
	case n < 1<<16:
		return 2
	case n < 1<<32:
		return 4
	}
	return 8
}

// number appends the low bytes of a number, most significant byte first.
func number(b []byte, n uint64, size int) []byte {
	for i := size - 1; i >= 0; i-- {
		b = append(b, byte(n>>(8*i)))
	}
	return b
}

// integer appends the object for a number.
func integer(b []byte, n uint64) []byte {
	size := sizeOf(n)
	return number(append(b, 0x10|byte(slices.Index([]int{1, 2, 4, 8}, size))), n, size)
}

// head appends the type and the length of an object.
func head(b []byte, kind byte, n int) []byte {
	if n < 15 {
		return append(b, kind|byte(n))
	}
	return integer(append(b, kind|15), uint64(n))
}

// binaryPlist reads a binary property list.
type binaryPlist struct {
	data            []byte // the list without the trailer
	offsets         []byte
	offSize, ref    int
	objects, values uint64
	content         int // total length of texts and bytes
}

var errPlist = errors.New("Invalid file")

func readBinaryPlist(b []byte) (any, error) {
	if len(b) < len(bplistHead)+bplistTrailer {
		return nil, errPlist
	}
	body, t := b[:len(b)-bplistTrailer], b[len(b)-bplistTrailer:]
	p := &binaryPlist{data: body, offSize: int(t[6]), ref: int(t[7]), objects: binary.BigEndian.Uint64(t[8:])}
	top, table := binary.BigEndian.Uint64(t[16:]), binary.BigEndian.Uint64(t[24:])
	if p.offSize < 1 || p.offSize > 8 || p.ref < 1 || p.ref > 8 || table > uint64(len(body)) || p.objects > (uint64(len(body))-table)/uint64(p.offSize) {
		return nil, errPlist
	}
	p.offsets = body[table:]
	return p.value(top, 0)
}

// uint returns the number in size bytes at an offset.
func (p *binaryPlist) uint(b []byte, at uint64, size int) (uint64, error) {
	if at > uint64(len(b)) || uint64(size) > uint64(len(b))-at {
		return 0, errPlist
	}
	var n uint64
	for _, c := range b[at : at+uint64(size)] {
		n = n<<8 | uint64(c)
	}
	return n, nil
}

// length returns the length of an object and the offset of its content. at is the offset after the object's first
// byte.
func (p *binaryPlist) length(at uint64, low byte) (n, from uint64, err error) {
	if low != 15 {
		return uint64(low), at, nil
	}
	size, err := p.uint(p.data, at, 1)
	if err != nil || size&0xF0 != 0x10 || size&0x0F > 3 {
		return 0, 0, errPlist
	}
	width := 1 << (size & 3)
	n, err = p.uint(p.data, at+1, width)
	return n, at + 1 + uint64(width), err
}

// bytes returns the content of an object that consists of n parts of size bytes.
func (p *binaryPlist) bytes(from, n uint64, size int) ([]byte, error) {
	if from > uint64(len(p.data)) || n > (uint64(len(p.data))-from)/uint64(size) {
		return nil, errPlist
	}
	return p.data[from : from+n*uint64(size)], nil
}

// scalar returns the content of a text or of data. It limits their total length, since many objects may refer to the
// same bytes.
func (p *binaryPlist) scalar(from, n uint64, size int) ([]byte, error) {
	b, err := p.bytes(from, n, size)
	if p.content += len(b); p.content > len(p.data)+maxPlistRepeats {
		return nil, errors.New("cannot read the property list: it repeats too much")
	}
	return b, err
}

func (p *binaryPlist) value(ref uint64, depth int) (any, error) {
	if p.values++; p.values > maxPlistValues || depth > maxNesting {
		return nil, errors.New("maximum recursion depth exceeded")
	}
	if ref >= p.objects {
		return nil, errPlist
	}
	at, err := p.uint(p.offsets, ref*uint64(p.offSize), p.offSize)
	if err != nil {
		return nil, err
	}
	token, err := p.uint(p.data, at, 1)
	if err != nil {
		return nil, err
	}
	kind, low := byte(token)&0xF0, byte(token)&0x0F
	at++
	switch {
	case token == 0:
		return nil, nil
	case token == 8, token == 9:
		return token == 9, nil
	case token == 0x0F:
		return []byte{}, nil
	case kind == 0x10 && low <= 4:
		return p.int(at, 1<<low)
	case token == 0x22:
		n, err := p.uint(p.data, at, 4)
		return float64(math.Float32frombits(uint32(n))), err
	case token == 0x23:
		n, err := p.uint(p.data, at, 8)
		return math.Float64frombits(n), err
	case kind == 0x30, kind == 0x80:
		return nil, errors.New("cannot read the property list: dates and UIDs are no values here")
	}
	n, from, err := p.length(at, low)
	if err != nil {
		return nil, err
	}
	switch kind {
	case 0x40:
		b, err := p.scalar(from, n, 1)
		return slices.Clone(b), err
	case 0x50:
		b, err := p.scalar(from, n, 1)
		if err == nil && slices.ContainsFunc(b, func(c byte) bool { return c > 127 }) {
			err = errPlist
		}
		return string(b), err
	case 0x60:
		b, err := p.scalar(from, n, 2)
		units := make([]uint16, len(b)/2)
		for i := range units {
			units[i] = binary.BigEndian.Uint16(b[2*i:])
		}
		return string(utf16.Decode(units)), err
	case 0xA0:
		l := &pyobj.List{}
		return l, p.members(from, n, depth, func(_ uint64, v any) error {
			l.Items = append(l.Items, v)
			return nil
		})
	case 0xD0:
		d := &pyobj.Dict{}
		keys := &pyobj.List{}
		if err := p.members(from, n, depth, func(_ uint64, v any) error {
			if _, ok := v.(string); !ok {
				return errPlist
			}
			keys.Items = append(keys.Items, v)
			return nil
		}); err != nil {
			return nil, err
		}
		return d, p.members(from+n*uint64(p.ref), n, depth, func(i uint64, v any) error { return d.Set(keys.Items[i], v) })
	}
	return nil, errPlist
}

// int reads an integer. Integers of eight bytes and more are signed.
func (p *binaryPlist) int(at uint64, size int) (any, error) {
	if size == 16 {
		b, err := p.bytes(at, 16, 1)
		if err != nil {
			return nil, err
		}
		n := new(big.Int).SetBytes(b)
		if b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		if n.IsInt64() {
			return n.Int64(), nil
		}
		return n, nil
	}
	n, err := p.uint(p.data, at, size)
	return int64(n), err
}

// members reads the n objects whose numbers begin at an offset.
func (p *binaryPlist) members(from, n uint64, depth int, add func(i uint64, v any) error) error {
	if _, err := p.bytes(from, n, p.ref); err != nil {
		return err
	}
	for i := range n {
		ref, err := p.uint(p.data, from+i*uint64(p.ref), p.ref)
		if err != nil {
			return err
		}
		v, err := p.value(ref, depth+1)
		if err == nil {
			err = add(i, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
