package serializers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"unicode/utf8"

	"github.com/brine-salt/brine/modules/pyobj"
)

// maxNesting limits the nesting of data, as in Python's package.
const maxNesting = 511

type packer struct {
	out []byte
	bin bool // bytes have their own type
}

// head writes the type and the length of a value. A length below fix is part of the type's byte, base. A longer one
// follows one of the codes for lengths of 8 (0 if there is no such code), 16 and 32 bits.
func (p *packer) head(n int, base byte, fix int, c8, c16, c32 byte) {
	switch {
	case n < fix:
		p.out = append(p.out, base|byte(n))
	case n <= math.MaxUint8 && c8 != 0:
		p.out = append(p.out, c8, byte(n))
	case n <= math.MaxUint16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, c16), uint16(n))
	default:
		p.out = binary.BigEndian.AppendUint32(append(p.out, c32), uint32(n))
	}
}

func (p *packer) value(v any, depth int) error {
	if depth > maxNesting {
		return errors.New("recursion limit exceeded")
	}
	switch v := v.(type) {
	case nil:
		p.out = append(p.out, 0xc0)
	case bool:
		if v {
			p.out = append(p.out, 0xc3)
		} else {
			p.out = append(p.out, 0xc2)
		}
	case int64:
		p.integer(v)
	case int:
		p.integer(int64(v))
	case uint64:
		if v <= math.MaxInt64 {
			p.integer(int64(v))
		} else {
			p.out = binary.BigEndian.AppendUint64(append(p.out, 0xcf), v)
		}
	case *big.Int:
		if !v.IsUint64() {
			return errors.New("Integer value out of range")
		}
		return p.value(v.Uint64(), depth)
	case float64:
		p.out = binary.BigEndian.AppendUint64(append(p.out, 0xcb), math.Float64bits(v))
	case string:
		if p.bin {
			p.head(len(v), 0xa0, 32, 0xd9, 0xda, 0xdb)
		} else {
			p.head(len(v), 0xa0, 32, 0, 0xda, 0xdb)
		}
		p.out = append(p.out, v...)
	case pyobj.Markup:
		return p.value(string(v), depth)
	case []byte:
		if p.bin {
			p.head(len(v), 0, 0, 0xc4, 0xc5, 0xc6)
		} else {
			p.head(len(v), 0xa0, 32, 0, 0xda, 0xdb)
		}
		p.out = append(p.out, v...)
	case *pyobj.List:
		return p.list(v.Items, depth)
	case pyobj.Tuple:
		return p.list(v, depth)
	case *pyobj.Dict:
		p.head(v.Len(), 0x80, 16, 0, 0xde, 0xdf)
		for k, x := range v.All() {
			if err := p.value(k, depth+1); err != nil {
				return err
			}
			if err := p.value(x, depth+1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("can not serialize '%s' object", pyobj.TypeName(v))
	}
	return nil
}

func (p *packer) list(items []any, depth int) error {
	p.head(len(items), 0x90, 16, 0, 0xdc, 0xdd)
	for _, x := range items {
		if err := p.value(x, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// integer writes an integer in the shortest form.
func (p *packer) integer(n int64) {
	switch {
	case n >= 0 && n < 128, n < 0 && n >= -32:
		p.out = append(p.out, byte(n))
	case n >= 0 && n <= math.MaxUint8:
		p.out = append(p.out, 0xcc, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, 0xcd), uint16(n))
	case n >= 0 && n <= math.MaxUint32:
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xce), uint32(n))
	case n >= 0:
		p.out = binary.BigEndian.AppendUint64(append(p.out, 0xcf), uint64(n))
	case n >= math.MinInt8:
		p.out = append(p.out, 0xd0, byte(n))
	case n >= math.MinInt16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, 0xd1), uint16(n))
	case n >= math.MinInt32:
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xd2), uint32(n))
	default:
		p.out = binary.BigEndian.AppendUint64(append(p.out, 0xd3), uint64(n))
	}
}

// unpack decodes one value, which must take all of b.
func unpack(b []byte) (any, error) {
	u := unpacker{b}
	v, err := u.value(0)
	if err == nil && len(u.rest) > 0 {
		err = errors.New("unpack(b) received extra data.")
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

type unpacker struct{ rest []byte }

var errShort = errors.New("Unpack failed: incomplete input")

func (u *unpacker) take(n int) ([]byte, error) {
	if n < 0 || n > len(u.rest) {
		return nil, errShort
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b, nil
}

// number reads an unsigned integer of n bytes.
func (u *unpacker) number(n int) (uint64, error) {
	b, err := u.take(n)
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v, err
}

// length reads a length of n bytes. It returns an error if fewer bytes than that remain.
func (u *unpacker) length(n int) (int, error) {
	v, err := u.number(n)
	if err == nil && v > uint64(len(u.rest)) {
		err = errShort
	}
	return int(min(v, math.MaxInt32)), err
}

func (u *unpacker) value(depth int) (any, error) {
	if depth > maxNesting {
		return nil, errors.New("recursion limit exceeded")
	}
	head, err := u.take(1)
	if err != nil {
		return nil, err
	}
	c := head[0]
	switch {
	case c < 0x80, c >= 0xe0:
		return int64(int8(c)), nil
	case c < 0x90:
		return u.dict(int(c&15), depth)
	case c < 0xa0:
		return u.list(int(c&15), depth)
	case c < 0xc0:
		return u.text(int(c & 31))
	}
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xc4, 0xc5, 0xc6:
		n, err := u.length(1 << (c - 0xc4))
		if err != nil {
			return nil, err
		}
		b, err := u.take(n)
		return append([]byte{}, b...), err
	case 0xca:
		n, err := u.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := u.number(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := u.number(1 << (c - 0xcc))
		if n > math.MaxInt64 {
			return new(big.Int).SetUint64(n), err
		}
		return int64(n), err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (c - 0xd0)
		n, err := u.number(size)
		shift := 64 - 8*size
		return int64(n<<shift) >> shift, err
	case 0xd9, 0xda, 0xdb:
		n, err := u.length(1 << (c - 0xd9))
		if err != nil {
			return nil, err
		}
		return u.text(n)
	case 0xdc, 0xdd:
		n, err := u.length(2 << (c - 0xdc))
		if err != nil {
			return nil, err
		}
		return u.list(n, depth)
	case 0xde, 0xdf:
		n, err := u.length(2 << (c - 0xde))
		if err != nil {
			return nil, err
		}
		return u.dict(n, depth)
	}
	return nil, fmt.Errorf("cannot read msgpack: type %#02x has no meaning here", c)
}

func (u *unpacker) text(n int) (any, error) {
	b, err := u.take(n)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(b) {
		return nil, errors.New("cannot read msgpack: a text is not UTF-8")
	}
	return string(b), nil
}

func (u *unpacker) list(n, depth int) (any, error) {
	l := &pyobj.List{}
	for range n {
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	return l, nil
}

func (u *unpacker) dict(n, depth int) (any, error) {
	d := &pyobj.Dict{}
	for range n {
		k, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		switch k.(type) {
		case string, []byte:
		default:
			return nil, fmt.Errorf("%s is not allowed for map key when strict_map_key=True", pyobj.TypeName(k))
		}
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if err := d.Set(k, v); err != nil {
			return nil, err
		}
	}
	return d, nil
}
