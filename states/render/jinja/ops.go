package jinja

import (
	"bytes"
	"math"
	"math/big"
	"strings"

	"github.com/brine-salt/brine/internal/pyobj"
)

// MaxText is how many bytes one text may have.
const MaxText = 64 << 20

// maxBits is how many bits an integer may have.
const maxBits = 1 << 20

// MaxMade is how many bytes all texts and collections may have together that a run makes, whether or not they are still there.
const MaxMade = 256 << 20

// What a member of a list or tuple takes with a small value, and one of a dict or set.
const (
	slotBytes  = 24
	entryBytes = 64
)

// made counts what an operation has made. A value that was there before counts as well, since nobody can tell.
func (r *Run) made(v any, err error) (any, error) {
	if err != nil {
		return v, err
	}
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

func opText(op kind) string {
	for i := range operators {
		if operators[i].kind == op {
			return operators[i].text
		}
	}
	return "?"
}

func unsupported(op kind, a, b any) error {
	text := opText(op)
	if op == tPow {
		text = "** or pow()"
	}
	return typeError("unsupported operand type(s) for %s: '%s' and '%s'", text, pyobj.TypeName(a), pyobj.TypeName(b))
}

// binary computes a op b.
func (r *Run) binary(op kind, a, b any) (any, error) {
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
	if u, ok := b.(*Undefined); ok && op != tMod { // "%" of a text formats it
		return nil, u.fail()
	}
	if isNumber(a) && isNumber(b) {
		return numbers(op, a, b)
	}
	switch op {
	case tAdd:
		return r.add(a, b)
	case tMul:
		return multiply(a, b)
	case tMod:
		if s, ok := isText(a); ok {
			return r.percent(a, s, b)
		}
		if u, ok := b.(*Undefined); ok {
			return nil, u.fail()
		}
	case tSub:
		if s, ok := a.(*pyobj.Set); ok {
			if t, ok := b.(*pyobj.Set); ok {
				out := &pyobj.Set{}
				for _, x := range s.Items() {
					if !t.Has(x) {
						_ = out.Add(x)
					}
				}
				return out, nil
			}
		}
	}
	return nil, unsupported(op, a, b)
}

// smallInts is arithmetic within 64 bits; not ok when it leaves them or needs more care.
func smallInts(op kind, x, y int64) (any, bool) {
	switch op {
	case tAdd:
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
	n, _ := integer(v)
	return big.NewInt(n)
}

// toFloat is float(v) of a number.
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
	n, _ := integer(v)
	return float64(n), nil
}

func numbers(op kind, a, b any) (any, error) {
	_, fa := a.(float64)
	_, fb := b.(float64)
	if fa || fb || op == tDiv {
		return floats(op, a, b)
	}
	x, y, z := toBig(a), toBig(b), new(big.Int)
	switch op {
	case tAdd:
		z.Add(x, y)
	case tSub:
		z.Sub(x, y)
	case tMul:
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
			return floats(op, a, b)
		}
		if x.BitLen() > 1 && (!y.IsInt64() || int64(x.BitLen())*y.Int64() > maxBits) {
			return nil, raise("MemoryError", "integer of more than %d bits", maxBits)
		}
		if x.BitLen() <= 1 && !y.IsInt64() {
			y = new(big.Int).And(y, big.NewInt(1))
			if y.Sign() == 0 {
				y.SetInt64(2)
			}
		}
		z.Exp(x, y, nil)
	default:
		return nil, unsupported(op, a, b)
	}
	return pyobj.Int(z), nil
}

func floats(op kind, a, b any) (any, error) {
	if op == tDiv {
		_, fa := a.(float64)
		_, fb := b.(float64)
		if !fa && !fb { // true division of ints is exact before it is rounded
			y := toBig(b)
			if y.Sign() == 0 {
				return nil, raise("ZeroDivisionError", "division by zero")
			}
			x := toBig(a)
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
		if math.IsNaN(v) && !math.IsNaN(x) && !math.IsNaN(y) {
			return nil, valueError("a negative number to a fractional power is complex")
		}
		if math.IsInf(v, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			return nil, raise("OverflowError", "(34, 'Numerical result out of range')")
		}
		return v, nil
	}
	return nil, unsupported(op, a, b)
}

// add is + of what is no number.
func (r *Run) add(a, b any) (any, error) {
	switch x := a.(type) {
	case string:
		switch y := b.(type) {
		case string:
			if len(x)+len(y) > MaxText {
				return nil, TooLong()
			}
			return x + y, nil
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
		return nil, unsupported(tAdd, a, b)
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
	return nil, unsupported(tAdd, a, b)
}

// TooLong returns the error for a text of more than [MaxText] bytes.
func TooLong() error { return raise("MemoryError", "text of more than %d bytes", MaxText) }

func multiply(left, right any) (any, error) {
	a, b := left, right
	if _, ok := integer(a); ok {
		a, b = b, a
	}
	switch a.(type) {
	case string, pyobj.Markup, *pyobj.List, pyobj.Tuple, []byte:
	default:
		switch right.(type) {
		case string, pyobj.Markup, *pyobj.List, pyobj.Tuple, []byte:
			return nil, typeError("can't multiply sequence by non-int of type '%s'", pyobj.TypeName(left))
		}
		return nil, unsupported(tMul, left, right)
	}
	n64, ok := integer(b)
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
		items, err := repeat(x.Items, n)
		return &pyobj.List{Items: items}, err
	case pyobj.Tuple:
		items, err := repeat(x, n)
		return pyobj.Tuple(items), err
	}
	s := a.([]byte)
	if len(s) > 0 && n > MaxText/len(s) {
		return nil, TooLong()
	}
	return bytes.Repeat(s, n), nil
}

func repeat(items []any, n int) ([]any, error) {
	if len(items) > 0 && n > maxItems/len(items) {
		return nil, raise("MemoryError", "more than %d items", maxItems)
	}
	out := make([]any, 0, len(items)*n)
	for range n {
		out = append(out, items...)
	}
	return out, nil
}

// sign is -v or +v.
func sign(neg bool, v any) (any, error) {
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
		n, _ := integer(x)
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

// Escape is markupsafe.escape of a text.
func Escape(s string) string {
	if !strings.ContainsAny(s, `&<>'"`) {
		return s
	}
	return strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

// escaped is markupsafe.escape of a value.
func escaped(v any) (pyobj.Markup, error) {
	switch v := v.(type) {
	case pyobj.Markup:
		return v, nil
	case *Module:
		return pyobj.Markup(v.body), nil
	}
	s, err := Str(v)
	return pyobj.Markup(Escape(s)), err
}
