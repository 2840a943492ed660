package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errShort = errors.New("payload: input ends inside of a value")

// Fields returns the packed values of some keys of a map, as parts of b. Keys that the map does not have are missing
// in the result. The values of other keys are skipped without unpacking. b must be exactly one map, or a packed nil,
// which has no keys.
func Fields(b []byte, keys ...string) (map[string][]byte, error) {
	n, rest, err := mapHead(b)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte, len(keys))
	for range n {
		key, after, err := skipValue(rest, DefaultDepth)
		if err != nil {
			return nil, err
		}
		value, left, err := skipValue(after, DefaultDepth)
		if err != nil {
			return nil, err
		}
		name := contentOf(key)
		for _, k := range keys {
			if string(name) == k {
				found[k] = value
			}
		}
		rest = left
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("payload: %d bytes after the value", len(rest))
	}
	return found, nil
}

// mapHead reads the head of a map and returns how many entries follow.
func mapHead(b []byte) (n int, rest []byte, err error) {
	if len(b) == 0 {
		return 0, nil, errShort
	}
	switch c := b[0]; {
	case c == 0xc0:
		return 0, b[1:], nil
	case c>>4 == 0x8:
		return int(c & 0xf), b[1:], nil
	case c == 0xde:
		return number(b, 2)
	case c == 0xdf:
		return number(b, 4)
	}
	return 0, nil, errors.New("payload: not a map")
}

// number reads the big-endian number of size bytes after the first byte. It counts bytes or values, so a number
// larger than the rest of the input is an error. On a 32-bit processor such a number might not fit into an int.
func number(b []byte, size int) (n int, rest []byte, err error) {
	if len(b) < 1+size {
		return 0, nil, errShort
	}
	rest = b[1+size:]
	var count uint64
	switch size {
	case 1:
		count = uint64(b[1])
	case 2:
		count = uint64(binary.BigEndian.Uint16(b[1:]))
	default:
		count = uint64(binary.BigEndian.Uint32(b[1:]))
	}
	if count > uint64(len(rest)) {
		return 0, nil, errShort
	}
	return int(count), rest, nil
}

// contentOf returns the content of a packed text or byte string, or nil for any other value.
func contentOf(b []byte) []byte {
	switch c := b[0]; {
	case c>>5 == 0x5:
		return b[1:]
	case c == 0xd9 || c == 0xc4:
		return b[2:]
	case c == 0xda || c == 0xc5:
		return b[3:]
	case c == 0xdb || c == 0xc6:
		return b[5:]
	}
	return nil
}

// skipValue splits off the first value of b.
func skipValue(b []byte, depth int) (value, rest []byte, err error) {
	if len(b) == 0 {
		return nil, nil, errShort
	}
	if depth <= 0 {
		return nil, nil, fmt.Errorf("payload: containers nested too deeply: %w", ErrLimit)
	}
	n, members, after := 0, 0, b[1:]
	switch c := b[0]; {
	case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3: // small numbers, nil, bools
	case c>>4 == 0x8:
		members = 2 * int(c&0xf)
	case c>>4 == 0x9:
		members = int(c & 0xf)
	case c>>5 == 0x5:
		n = int(c & 0x1f)
	case c == 0xcc || c == 0xd0:
		n = 1
	case c == 0xcd || c == 0xd1:
		n = 2
	case c == 0xca || c == 0xce || c == 0xd2:
		n = 4
	case c == 0xcb || c == 0xcf || c == 0xd3:
		n = 8
	case c >= 0xd4 && c <= 0xd8:
		n = 1 + 1<<(c-0xd4) // an extension's type and its bytes
	case c == 0xc4 || c == 0xd9:
		n, after, err = number(b, 1)
	case c == 0xc5 || c == 0xda:
		n, after, err = number(b, 2)
	case c == 0xc6 || c == 0xdb:
		n, after, err = number(b, 4)
	case c >= 0xc7 && c <= 0xc9:
		n, after, err = number(b, 1<<(c-0xc7))
		n++
	case c == 0xdc || c == 0xdd:
		members, after, err = number(b, 2<<(c-0xdc))
	case c == 0xde || c == 0xdf:
		members, after, err = number(b, 2<<(c-0xde))
		members *= 2
	default:
		err = fmt.Errorf("payload: code %#x is unknown", c)
	}
	if err == nil && n > len(after) {
		err = errShort
	}
	if err != nil {
		return nil, nil, err
	}
	after = after[n:]
	for range members {
		if _, after, err = skipValue(after, depth-1); err != nil {
			return nil, nil, err
		}
	}
	return b[:len(b)-len(after)], after, nil
}
