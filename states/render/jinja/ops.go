package jinja

import (
	"bytes"
	"math"
	"math/big"
	"strings"

	"github.com/brine-salt/brine/modules/pyobj"
)

// MaxText is the limit in bytes for one text, and for the output of a render.
const MaxText = 64 << 20

// maxBits is the limit in bits for an integer. An upper bound for the size of a product or a power is computed before
// the result is.
const maxBits = 1 << 20

// MaxMade is the limit in bytes for all texts and collections that a render creates, whether or not they are still in
// use: it is unknown what the garbage collector has freed.
const MaxMade = 256 << 20

// slotBytes is the size of an element of a list or tuple that holds a small value, entryBytes that of an entry of a
// dict or set.
const (
	slotBytes  = 24
	entryBytes = 64
)

// countMade counts the value that an operation returns. A value that existed before counts as well, since the two
// cannot be told apart. It passes err on, so that calls can be wrapped in it.
func (r *Run) countMade(v any, err error) (any, error) {
	if err != nil {
		return v, err
	}
	// Only texts and collections take memory in proportion to their size.
	switch v := v.(type) {
	case string:
		r.bytes += len(v)
	case pyobj.Markup:
		r.bytes += len(v)
	case []byte:
		r.bytes += len(v)
	case *pyobj.List:
		r.bytes += slotBytes * len(v.Items)
	case pyobj.Tuple:
		r.bytes += slotBytes * len(v)
	case *pyobj.Dict:
		r.bytes += entryBytes * v.Len()
	case *pyobj.Set:
		r.bytes += entryBytes * v.Len()
	case *Iter:
		r.bytes += v.bytes
	}
	// guard: template-bombs states/render:TestTemplateBombs instead: r.bytes > 5*MaxMade
	if r.bytes > MaxMade {
		return nil, raise("MemoryError", "the template has made more than %d bytes of texts and lists", MaxMade)
	}
	return v, nil
}

// opText returns the text of an operator.
func opText(op kind) string {
	for i := range operators {
		if operators[i].kind == op {
			return operators[i].text
		}
	}
	return "?"
}

// unsupportedOperands returns Python's error for an operator that the types do not have.
func unsupportedOperands(op kind, a, b any) error {
	text := opText(op)
	if op == tPow {
		text = "** or pow()"
	}
	return typeError("unsupported operand type(s) for %s: '%s' and '%s'", text, pyobj.TypeName(a), pyobj.TypeName(b))
}

// binaryOp computes a op b.
func (r *Run) binaryOp(op kind, a, b any) (any, error) {
	// Small integers, the common case, do not need big.Int.
	x, okA := a.(int64)
	y, okB := b.(int64)
	if okA && okB {
		if v, ok := smallInts(op, x, y); ok {
			return v, nil
		}
	}
	if u, ok := a.(*Undefined); ok {
		return nil, u.fail()
	}
	if u, ok := b.(*Undefined); ok && op != tMod { // "%" of a text formats the value, defined or not
		return nil, u.fail()
	}
	if isNumber(a) && isNumber(b) {
		return numberOp(op, a, b)
	}
	// Operators of types that are not numbers.
	switch op {
	case tAdd:
		return r.addValues(a, b)
	case tMul:
		return multiplyValues(a, b)
	case tMod:
		if s, ok := isText(a); ok {
			return r.percentFormat(a, s, b)
		}
		if u, ok := b.(*Undefined); ok {
			return nil, u.fail()
		}
	case tSub:
		// The difference is the only operator that templates use on sets.
		if s, ok := a.(*pyobj.Set); ok {
			if t, ok := b.(*pyobj.Set); ok {
				out := &pyobj.Set{}
				for _, x := range s.Members() {
					if !t.Has(x) {
						_ = out.Add(x)
					}
				}
				return out, nil
			}
		}
	}
	return nil, unsupportedOperands(op, a, b)
}

// smallInts computes a op b within 64 bits. ok is false when the result leaves them or the case needs more care.
func smallInts(op kind, x, y int64) (any, bool) {
	switch op {
	case tAdd:
		// Without an overflow, the sum is greater than x exactly if y is positive.
		if s := x + y; (s > x) == (y > 0) {
			return s, true
		}
	case tSub:
		if s := x - y; (s < x) == (y > 0) {
			return s, true
		}
	case tMul:
		if x > -1<<31 && x < 1<<31 && y > -1<<31 && y < 1<<31 {
			return x * y, true
		}
	// Divisors 0 and -1 are left out: one is an error, the other overflows for the smallest integer. Python rounds
	// down, Go towards zero.
	case tFloorDiv:
		if y > 0 || y < -1 {
			q := x / y
			if x%y != 0 && (x < 0) != (y < 0) {
				q--
			}
			return q, true
		}
	case tMod:
		if y > 0 || y < -1 {
			m := x % y
			if m != 0 && (m < 0) != (y < 0) {
				m += y
			}
			return m, true
		}
	}
	return nil, false
}

// toBig returns an integer of any kind as a big.Int, which the caller must not change.
func toBig(v any) *big.Int {
	switch v := v.(type) {
	case *big.Int:
		return v
	case bool:
		if v {
			return big.NewInt(1)
		}
		return new(big.Int)
	}
	n, _ := toInteger(v)
	return big.NewInt(n)
}

// toFloat implements float(v) for a number. An integer beyond the range of a float is an error, as in Python.
func toFloat(v any) (float64, error) {
	switch v := v.(type) {
	case float64:
		return v, nil
	case *big.Int:
		f, _ := new(big.Float).SetInt(v).Float64()
		if math.IsInf(f, 0) {
			return 0, raise("OverflowError", "int too large to convert to float")
		}
		return f, nil
	}
	n, _ := toInteger(v)
	return float64(n), nil
}

// numberOp computes a op b for numbers of any size.
func numberOp(op kind, a, b any) (any, error) {
	_, fa := a.(float64)
	_, fb := b.(float64)
	if fa || fb || op == tDiv {
		return floatOp(op, a, b)
	}
	x, y, z := toBig(a), toBig(b), new(big.Int)
	switch op {
	// Each operation is exact.
	case tAdd:
		z.Add(x, y)
	case tSub:
		z.Sub(x, y)
	case tMul:
		// The size of the result is known before it is computed. The same is true for a power below.
		if x.BitLen()+y.BitLen() > maxBits {
			return nil, raise("MemoryError", "integer of more than %d bits", maxBits)
		}
		z.Mul(x, y)
	case tFloorDiv, tMod:
		if y.Sign() == 0 {
			if op == tMod {
				return nil, raise("ZeroDivisionError", "integer modulo by zero")
			}
			return nil, raise("ZeroDivisionError", "integer division or modulo by zero")
		}
		m := new(big.Int)
		z.QuoRem(x, y, m)
		if m.Sign() != 0 && m.Sign() != y.Sign() {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == tMod {
			z = m
		}
	case tPow:
		if y.Sign() < 0 {
			return floatOp(op, a, b)
		}
		// 1 and 0 may have any exponent; only its parity matters for -1.
		if x.BitLen() > 1 && (!y.IsInt64() || int64(x.BitLen())*y.Int64() > maxBits) {
			return nil, raise("MemoryError", "integer of more than %d bits", maxBits)
		}
		// Only the parity of the exponent matters for 1, 0 and -1.
		if x.BitLen() <= 1 && !y.IsInt64() {
			y = new(big.Int).And(y, big.NewInt(1))
			if y.Sign() == 0 {
				y.SetInt64(2)
			}
		}
		z.Exp(x, y, nil)
	default:
		return nil, unsupportedOperands(op, a, b)
	}
	return pyobj.Int(z), nil
}

// floatOp computes a op b in float64, with CPython's rules for signs, zeros and errors.
func floatOp(op kind, a, b any) (any, error) {
	if op == tDiv {
		_, fa := a.(float64)
		_, fb := b.(float64)
		if !fa && !fb { // true division of ints is exact before it is rounded
			y := toBig(b)
			if y.Sign() == 0 {
				return nil, raise("ZeroDivisionError", "division by zero")
			}
			x := toBig(a)
			// The sign of a zero is kept.
			if x.Sign() == 0 && y.Sign() < 0 {
				return math.Copysign(0, -1), nil
			}
			f, _ := new(big.Rat).SetFrac(x, y).Float64()
			if math.IsInf(f, 0) {
				return nil, raise("OverflowError", "integer division result too large for a float")
			}
			return f, nil
		}
	}
	x, err := toFloat(a)
	if err != nil {
		return nil, err
	}
	y, err := toFloat(b)
	if err != nil {
		return nil, err
	}
	switch op {
	case tAdd:
		return x + y, nil
	case tSub:
		return x - y, nil
	case tMul:
		return x * y, nil
	case tDiv:
		if y == 0 {
			return nil, raise("ZeroDivisionError", "float division by zero")
		}
		return x / y, nil
	case tFloorDiv, tMod:
		if y == 0 {
			if op == tMod {
				return nil, raise("ZeroDivisionError", "float modulo")
			}
			return nil, raise("ZeroDivisionError", "float floor division by zero")
		}
		// CPython's float_divmod: the remainder has the sign of the divisor, and the quotient is rounded from it.
		m := math.Mod(x, y)
		if m != 0 && (m < 0) != (y < 0) {
			m += y
		}
		if op == tMod {
			if m == 0 {
				m = math.Copysign(0, y)
			}
			return m, nil
		}
		div := (x - m) / y
		if div == 0 {
			return math.Copysign(0, x/y), nil
		}
		floor := math.Floor(div)
		if div-floor > 0.5 {
			floor++
		}
		return floor, nil
	case tPow:
		if x == 0 && y < 0 {
			return nil, raise("ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		v := math.Pow(x, y)
		// Python would return a complex number.
		if math.IsNaN(v) && !math.IsNaN(x) && !math.IsNaN(y) {
			return nil, valueError("a negative number to a fractional power is complex")
		}
		if math.IsInf(v, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			return nil, raise("OverflowError", "(34, 'Numerical result out of range')")
		}
		return v, nil
	}
	return nil, unsupportedOperands(op, a, b)
}

// addValues implements + for values that are not numbers.
func (r *Run) addValues(a, b any) (any, error) {
	// The left operand decides, because Python tries its method first.
	switch x := a.(type) {
	case string:
		switch y := b.(type) {
		case string:
			if len(x)+len(y) > MaxText {
				return nil, TooLong()
			}
			return x + y, nil
		// A str is escaped when it is added to Markup, on either side.
		case pyobj.Markup:
			return pyobj.Markup(Escape(x)) + y, nil
		}
		return nil, typeError("can only concatenate str (not \"%s\") to str", pyobj.TypeName(b))
	case pyobj.Markup:
		if s, ok := b.(string); ok {
			return x + pyobj.Markup(Escape(s)), nil
		}
		if y, ok := b.(pyobj.Markup); ok {
			return x + y, nil
		}
		return nil, unsupportedOperands(tAdd, a, b)
	case *pyobj.List:
		if y, ok := b.(*pyobj.List); ok {
			return &pyobj.List{Items: append(append(make([]any, 0, len(x.Items)+len(y.Items)), x.Items...), y.Items...)}, nil
		}
		return nil, typeError("can only concatenate list (not \"%s\") to list", pyobj.TypeName(b))
	case pyobj.Tuple:
		if y, ok := b.(pyobj.Tuple); ok {
			return append(append(make(pyobj.Tuple, 0, len(x)+len(y)), x...), y...), nil
		}
		return nil, typeError("can only concatenate tuple (not \"%s\") to tuple", pyobj.TypeName(b))
	case []byte:
		if y, ok := b.([]byte); ok {
			return append(append([]byte{}, x...), y...), nil
		}
		return nil, typeError("can't concat %s to bytes", pyobj.TypeName(b))
	}
	return nil, unsupportedOperands(tAdd, a, b)
}

// TooLong returns the error for a text of more than [MaxText] bytes.
//
//go:noinline
func TooLong() error { return raise("MemoryError", "text of more than %d bytes", MaxText) }

// multiplyValues repeats a sequence.
func multiplyValues(left, right any) (any, error) {
	// The sequence may be either operand.
	a, b := left, right
	if _, ok := toInteger(a); ok {
		a, b = b, a
	}
	switch a.(type) {
	case string, pyobj.Markup, *pyobj.List, pyobj.Tuple, []byte:
	default:
		switch right.(type) {
		case string, pyobj.Markup, *pyobj.List, pyobj.Tuple, []byte:
			return nil, typeError("can't multiply sequence by non-int of type '%s'", pyobj.TypeName(left))
		}
		return nil, unsupportedOperands(tMul, left, right)
	}
	n64, ok := toInteger(b)
	if !ok {
		return nil, typeError("can't multiply sequence by non-int of type '%s'", pyobj.TypeName(b))
	}
	n := int(max(n64, 0))
	switch x := a.(type) {
	case string, pyobj.Markup:
		s, _ := isText(x)
		if s != "" && n > MaxText/len(s) {
			return nil, TooLong()
		}
		_, markup := x.(pyobj.Markup)
		return textLike(strings.Repeat(s, n), markup), nil
	case *pyobj.List:
		items, err := repeatItems(x.Items, n)
		return &pyobj.List{Items: items}, err
	case pyobj.Tuple:
		items, err := repeatItems(x, n)
		return pyobj.Tuple(items), err
	}
	s := a.([]byte)
	if len(s) > 0 && n > MaxText/len(s) {
		return nil, TooLong()
	}
	return bytes.Repeat(s, n), nil
}

// repeatItems repeats a list n times, within maxItems.
func repeatItems(items []any, n int) ([]any, error) {
	if len(items) > 0 && n > maxItems/len(items) {
		return nil, raise("MemoryError", "more than %d items", maxItems)
	}
	out := make([]any, 0, len(items)*n)
	for range n {
		out = append(out, items...)
	}
	return out, nil
}

// signedNumber implements -v, or +v if neg is false. +True is 1, as in Python.
func signedNumber(neg bool, v any) (any, error) {
	switch x := v.(type) {
	case int64:
		if !neg {
			return x, nil
		}
		if x != math.MinInt64 {
			return -x, nil
		}
		return pyobj.Int(new(big.Int).Neg(big.NewInt(x))), nil
	case bool:
		n, _ := toInteger(x)
		if neg {
			n = -n
		}
		return n, nil
	case float64:
		if neg {
			return -x, nil
		}
		return x, nil
	case *big.Int:
		if neg {
			return pyobj.Int(new(big.Int).Neg(x)), nil
		}
		return x, nil
	case *Undefined:
		return nil, x.fail()
	}
	op := "+"
	if neg {
		op = "-"
	}
	return nil, typeError("bad operand type for unary %s: '%s'", op, pyobj.TypeName(v))
}

// Escape implements markupsafe.escape of a text.
func Escape(s string) string {
	if !strings.ContainsAny(s, `&<>'"`) {
		return s
	}
	return strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

// escapeValue implements markupsafe.escape of a value: Markup and modules are safe already.
func escapeValue(v any) (pyobj.Markup, error) {
	switch v := v.(type) {
	case pyobj.Markup:
		return v, nil
	case *Module:
		return pyobj.Markup(v.body), nil
	}
	s, err := Str(v)
	return pyobj.Markup(Escape(s)), err
}
