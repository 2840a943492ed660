package payload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// packDepth is the depth limit of Python's packer. Salt could not have sent a value that nests deeper.
const packDepth = 511

// Marshal packs v in the dialect of the network, in which text and bytes are one type. Map keys are sorted, so equal
// values have equal bytes. It accepts every value that decoders return, all integer types, *big.Int (as decimal text
// if it does not fit, as in Salt), named and typed scalars, slices and maps, pointers to these, every [Dict],
// [Constant], and the values of package modules/pyobj. A nil slice or map is packed as an empty one, a nil pointer as
// nil. Structs, functions and channels are an error.
func Marshal(v any) ([]byte, error) { return appendTo(nil, v, false) }

// MarshalBin packs v in the dialect of files, IPC sockets and events. It is like [Marshal], but bytes have a separate
// type.
func MarshalBin(v any) ([]byte, error) { return appendTo(nil, v, true) }

// Append is like [Marshal], but writes into the free capacity of b.
func Append(b []byte, v any) ([]byte, error) { return appendTo(b, v, false) }

// AppendBin is like [MarshalBin], but writes into the free capacity of b.
func AppendBin(b []byte, v any) ([]byte, error) { return appendTo(b, v, true) }

func appendTo(b []byte, v any, bin bool) ([]byte, error) {
	if b == nil {
		b = make([]byte, 0, 256)
	}
	e := encoder{b: b, bin: bin}
	if err := e.value(v, packDepth); err != nil {
		return nil, fmt.Errorf("payload: cannot pack %T: %w", v, err)
	}
	return e.b, nil
}

var errDeep = errors.New("value is nested deeper than 511 levels")

type encoder struct {
	b   []byte
	bin bool
}

func (e *encoder) value(v any, depth int) error {
	switch v := v.(type) {
	case nil:
		e.b = append(e.b, 0xc0)
	case bool:
		e.bool(v)
	case string:
		return e.string(v)
	case []byte:
		return e.bytes(v)
	case int64:
		e.int(v)
	case int:
		e.int(int64(v))
	case uint64:
		e.uint(v)
	case float64:
		e.float(v)
	case []any:
		return e.list(v, depth)
	case map[string]any:
		return e.mapping(v, depth)
	case []string:
		return e.strings(v, depth)
	case Dict:
		return e.ordered(v, depth)
	case time.Time:
		return e.time(v)
	case Constant:
		return e.constant(v, depth)
	case *big.Int:
		return e.big(v)
	case interface{ Members() []any }:
		return e.list(v.Members(), depth)
	case interface{ Plain() any }:
		return e.value(v.Plain(), depth)
	case interface{ Repr() string }:
		return e.string(v.Repr())
	default:
		return e.reflected(reflect.ValueOf(v), depth)
	}
	return nil
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 0xc3)
	} else {
		e.b = append(e.b, 0xc2)
	}
}

func (e *encoder) int(n int64) {
	switch {
	case n >= 0:
		e.uint(uint64(n))
	case n >= -32:
		e.b = append(e.b, byte(n))
	case n >= math.MinInt8:
		e.b = append(e.b, 0xd0, byte(n))
	case n >= math.MinInt16:
		e.b = binary.BigEndian.AppendUint16(append(e.b, 0xd1), uint16(n))
	case n >= math.MinInt32:
		e.b = binary.BigEndian.AppendUint32(append(e.b, 0xd2), uint32(n))
	default:
		e.b = binary.BigEndian.AppendUint64(append(e.b, 0xd3), uint64(n))
	}
}

func (e *encoder) uint(n uint64) {
	switch {
	case n < 128:
		e.b = append(e.b, byte(n))
	case n <= math.MaxUint8:
		e.b = append(e.b, 0xcc, byte(n))
	case n <= math.MaxUint16:
		e.b = binary.BigEndian.AppendUint16(append(e.b, 0xcd), uint16(n))
	case n <= math.MaxUint32:
		e.b = binary.BigEndian.AppendUint32(append(e.b, 0xce), uint32(n))
	default:
		e.b = binary.BigEndian.AppendUint64(append(e.b, 0xcf), n)
	}
}

func (e *encoder) float(f float64) {
	e.b = binary.BigEndian.AppendUint64(append(e.b, 0xcb), math.Float64bits(f))
}

func (e *encoder) big(n *big.Int) error {
	switch {
	case n == nil:
		e.b = append(e.b, 0xc0)
	case n.IsInt64():
		e.int(n.Int64())
	case n.IsUint64():
		e.uint(n.Uint64())
	default:
		return e.string(n.String())
	}
	return nil
}

// head writes the code and length of an array or map.
func (e *encoder) head(n int, fix, code16, code32 byte) error {
	switch {
	case n < 16:
		e.b = append(e.b, fix|byte(n))
	case n <= math.MaxUint16:
		e.b = binary.BigEndian.AppendUint16(append(e.b, code16), uint16(n))
	case uint64(n) <= math.MaxUint32:
		e.b = binary.BigEndian.AppendUint32(append(e.b, code32), uint32(n))
	default:
		return fmt.Errorf("%d members are too many", n)
	}
	return nil
}

// strHead writes the code and length of a str. Python writes str8 in the bin dialect only.
func (e *encoder) strHead(n int) error {
	switch {
	case n < 32:
		e.b = append(e.b, 0xa0|byte(n))
	case e.bin && n <= math.MaxUint8:
		e.b = append(e.b, 0xd9, byte(n))
	case n <= math.MaxUint16:
		e.b = binary.BigEndian.AppendUint16(append(e.b, 0xda), uint16(n))
	case uint64(n) <= math.MaxUint32:
		e.b = binary.BigEndian.AppendUint32(append(e.b, 0xdb), uint32(n))
	default:
		return fmt.Errorf("text of %d bytes is too long", n)
	}
	return nil
}

// string writes text. In the bin dialect a Go string that is not UTF-8 is written as bytes: readers of str would
// fail.
func (e *encoder) string(s string) error {
	if e.bin && !utf8.ValidString(s) {
		return e.bytes([]byte(s))
	}
	e.room(len(s))
	if err := e.strHead(len(s)); err != nil {
		return err
	}
	e.b = append(e.b, s...)
	return nil
}

// slack is the extra capacity allocated after a long text, for the values that follow it.
const slack = 512

// room grows the buffer for n bytes and some slack, so that the values after a long text do not cause another copy.
func (e *encoder) room(n int) {
	if n > cap(e.b)-len(e.b) {
		e.b = slices.Grow(e.b, n+slack)
	}
}

func (e *encoder) bytes(b []byte) error {
	n := len(b)
	e.room(n)
	switch {
	case !e.bin:
		if err := e.strHead(n); err != nil {
			return err
		}
	case n <= math.MaxUint8:
		e.b = append(e.b, 0xc4, byte(n))
	case n <= math.MaxUint16:
		e.b = binary.BigEndian.AppendUint16(append(e.b, 0xc5), uint16(n))
	case uint64(n) <= math.MaxUint32:
		e.b = binary.BigEndian.AppendUint32(append(e.b, 0xc6), uint32(n))
	default:
		return fmt.Errorf("byte string of %d bytes is too long", n)
	}
	e.b = append(e.b, b...)
	return nil
}

func (e *encoder) list(l []any, depth int) error {
	if depth == 0 {
		return errDeep
	}
	if err := e.head(len(l), 0x90, 0xdc, 0xdd); err != nil {
		return err
	}
	for _, v := range l {
		if err := e.value(v, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) strings(l []string, depth int) error {
	if depth == 0 {
		return errDeep
	}
	if err := e.head(len(l), 0x90, 0xdc, 0xdd); err != nil {
		return err
	}
	for _, s := range l {
		if err := e.string(s); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) mapping(m map[string]any, depth int) error {
	if depth == 0 {
		return errDeep
	}
	if err := e.head(len(m), 0x80, 0xde, 0xdf); err != nil {
		return err
	}
	var few [24]string // most maps are small: no allocation for their keys
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if err := e.string(k); err != nil {
			return err
		}
		if err := e.value(m[k], depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) ordered(m Dict, depth int) error {
	if depth == 0 {
		return errDeep
	}
	if err := e.head(m.Len(), 0x80, 0xde, 0xdf); err != nil {
		return err
	}
	var key, value any
	for n, at := m.Len(), 0; n > 0; n-- {
		key, value, at = m.Entry(at)
		if err := e.value(key, depth-1); err != nil {
			return err
		}
		if err := e.value(value, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) time(t time.Time) error {
	if y := t.Year(); y < 1 || y > 9999 {
		return fmt.Errorf("year %d of a date has not four digits", y)
	}
	e.b = append(e.b, 0xc7, byte(len(dateLayout)), extDate)
	e.b = t.AppendFormat(e.b, dateLayout)
	return nil
}

func (e *encoder) constant(c Constant, depth int) error {
	if depth == 0 {
		return errDeep
	}
	inner := encoder{bin: true}
	if err := inner.list([]any{c.Name, c.Value}, depth-1); err != nil {
		return err
	}
	n := len(inner.b)
	switch {
	case n <= math.MaxUint8:
		e.b = append(e.b, 0xc7, byte(n), extConstant)
	case n <= math.MaxUint16:
		e.b = append(binary.BigEndian.AppendUint16(append(e.b, 0xc8), uint16(n)), extConstant)
	case uint64(n) <= math.MaxUint32:
		e.b = append(binary.BigEndian.AppendUint32(append(e.b, 0xc9), uint32(n)), extConstant)
	default:
		return fmt.Errorf("constant of %d bytes is too long", n)
	}
	e.b = append(e.b, inner.b...)
	return nil
}

// reflected packs values of other types by reflection: other integers, named types, typed slices and maps, pointers.
func (e *encoder) reflected(v reflect.Value, depth int) error {
	switch v.Kind() {
	case reflect.Bool:
		e.bool(v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.int(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		e.uint(v.Uint())
	case reflect.Float32, reflect.Float64:
		e.float(v.Float())
	case reflect.String:
		return e.string(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			e.b = append(e.b, 0xc0)
			return nil
		}
		if depth == 0 {
			return errDeep
		}
		return e.value(v.Elem().Interface(), depth-1)
	case reflect.Slice, reflect.Array:
		return e.reflectedList(v, depth)
	case reflect.Map:
		return e.reflectedMap(v, depth)
	default:
		return fmt.Errorf("msgpack has no type for a %s", v.Type())
	}
	return nil
}

func (e *encoder) reflectedList(v reflect.Value, depth int) error {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		b := make([]byte, v.Len())
		for i := range b {
			b[i] = byte(v.Index(i).Uint())
		}
		return e.bytes(b)
	}
	if depth == 0 {
		return errDeep
	}
	if err := e.head(v.Len(), 0x90, 0xdc, 0xdd); err != nil {
		return err
	}
	for i := range v.Len() {
		if err := e.value(v.Index(i).Interface(), depth-1); err != nil {
			return err
		}
	}
	return nil
}

// reflectedMap packs a map with keys other than string, sorted by the packed keys.
func (e *encoder) reflectedMap(v reflect.Value, depth int) error {
	if depth == 0 {
		return errDeep
	}
	if err := e.head(v.Len(), 0x80, 0xde, 0xdf); err != nil {
		return err
	}
	type entry struct{ key, value []byte }
	entries := make([]entry, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		k, m := encoder{bin: e.bin}, encoder{bin: e.bin}
		if err := k.value(it.Key().Interface(), depth-1); err != nil {
			return err
		}
		if err := m.value(it.Value().Interface(), depth-1); err != nil {
			return err
		}
		entries = append(entries, entry{k.b, m.b})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	for _, en := range entries {
		e.b = append(append(e.b, en.key...), en.value...)
	}
	return nil
}
