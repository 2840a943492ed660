package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
)

// filterAbs implements Python's abs.
func filterAbs(_ *Run, v any, _ Args) (any, error) {
	switch x := v.(type) {
	case float64:
		return math.Abs(x), nil
	case *Undefined:
		return nil, x.noMethod("__abs__", "bad operand type for abs(): '%s'")
	}
	if !isNumber(v) {
		return nil, typeError("bad operand type for abs(): '%s'", pyobj.TypeName(v))
	}
	n := toBig(v)
	return pyobj.Int(new(big.Int).Abs(n)), nil
}

// noMethod returns the error of an operation that even a lenient undefined value does not support.
func (u *Undefined) noMethod(_, format string) error { return typeError(format, u.TypeName()) }

// filterFilesize implements Jinja's filesizeformat.
func filterFilesize(r *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_filesizeformat", []string{"binary"}, false)
	if err != nil {
		return nil, err
	}
	binary, err := Truth(args[0])
	if err != nil {
		return nil, err
	}
	n, err := parseFloat(v)
	if err != nil {
		return nil, err
	}
	// The units are powers of 1,000 or of 1,024.
	base, letters := 1000.0, "kMGTPEZY"
	if binary {
		base, letters = 1024, "KMGTPEZY"
	}
	if n == 1 {
		return "1 Byte", nil
	}
	if n < base {
		return strconv.FormatInt(int64(n), 10) + " Bytes", nil
	}
	unit := base
	for i := range len(letters) {
		unit *= base
		if n < unit || i == len(letters)-1 {
			suffix := string(letters[i]) + "B"
			if binary {
				suffix = string(letters[i]) + "iB"
			}
			return strconv.FormatFloat(base*n/unit, 'f', 1, 64) + " " + suffix, nil
		}
	}
	return nil, nil
}

// parseFloat implements Python's float(v): numbers, and texts with underscores between digits, inf and nan in any
// case.
func parseFloat(v any) (float64, error) {
	if isNumber(v) {
		return toFloat(v)
	}
	if u, ok := v.(*Undefined); ok {
		return 0, u.fail()
	}
	s, ok := isText(v)
	if !ok {
		return 0, typeError("float() argument must be a string or a real number, not '%s'", shortType(v))
	}
	t := lower(pytext.Strip(s))
	// Python's float() accepts these, in any case and with a sign.
	switch strings.TrimLeft(t, "+-") {
	case "inf", "infinity", "nan":
		if f, err := strconv.ParseFloat(t, 64); err == nil {
			return f, nil
		}
	}
	// Only these characters are allowed, because Go would also accept hexadecimal floats.
	if plain := strings.Trim(t, "0123456789.eE+-_"); plain == "" && !strings.Contains(t, "__") && !strings.HasPrefix(t, "_") && !strings.HasSuffix(t, "_") {
		f, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
		// A value out of range is infinity in Python, not an error.
		if err == nil || math.IsInf(f, 0) {
			return f, nil
		}
	}
	return 0, valueError("could not convert string to float: %s", pyobj.Repr(s))
}

// parseInt implements Python's int(s, base) of a text. Base 0 takes the base from the prefix.
func parseInt(s string, base int) (any, error) {
	bad := func() error {
		return valueError("invalid literal for int() with base %d: %s", base, pyobj.Repr(s))
	}
	if base != 0 && (base < 2 || base > 36) {
		return nil, valueError("int() base must be >= 2 and <= 36, or 0")
	}
	t := lower(pytext.Strip(s))
	negative := strings.HasPrefix(t, "-")
	if negative || strings.HasPrefix(t, "+") {
		t = t[1:]
	}
	// The prefix must agree with the given base.
	use := base
	for _, p := range []struct {
		text string
		base int
	}{{"0x", 16}, {"0o", 8}, {"0b", 2}} {
		if strings.HasPrefix(t, p.text) && (base == 0 || base == p.base) {
			t, use = t[2:], p.base
			t = strings.TrimPrefix(t, "_")
		}
	}
	if use == 0 {
		use = 10
		// "010" is an error in base 0, since Python 2 read it as octal.
		if len(t) > 1 && t[0] == '0' && strings.Trim(t, "0_") != "" {
			return nil, bad()
		}
	}
	if t == "" || strings.HasPrefix(t, "_") || strings.HasSuffix(t, "_") || strings.Contains(t, "__") || strings.ContainsAny(t, "+-") {
		return nil, bad()
	}
	// The length is checked before the conversion, which takes quadratic time.
	if len(t) > maxDigits {
		return nil, valueError("Exceeds the limit (4300 digits) for integer string conversion: value has %d digits; use sys.set_int_max_str_digits() to increase the limit", len(t))
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(t, "_", ""), use)
	if !ok {
		// The text contains a digit that the base does not have.
		return nil, bad()
	}
	if negative {
		n.Neg(n)
	}
	return pyobj.Int(n), nil
}

// Int implements Python's int(v) of a number or a text. It fails with TypeError or ValueError as Python does.
func Int(v any) (any, error) {
	switch x := v.(type) {
	case float64:
		return floatToInt(x)
	case *Undefined:
		return nil, x.fail()
	}
	if isNumber(v) {
		return signedNumber(false, v)
	}
	if s, ok := isText(v); ok {
		return parseInt(s, 10)
	}
	return nil, typeError("int() argument must be a string, a bytes-like object or a real number, not '%s'", shortType(v))
}

// isKind reports whether an error is a Python exception of one of the classes.
//
//go:noinline
func isKind(err error, kinds ...string) bool {
	e, ok := err.(*Error)
	if !ok {
		return false
	}
	for _, k := range kinds {
		if e.Kind == k {
			return true
		}
	}
	return false
}

// filterInt implements Jinja's int: the number, the whole part of a float, or the default.
func filterInt(_ *Run, v any, a Args) (any, error) {
	var list [2]any
	args, err := a.bind(list[:], "do_int", []string{"default", "base"}, int64(0), int64(10))
	if err != nil {
		return nil, err
	}
	var n any
	// Text is read in the base, everything else by int().
	if s, ok := isText(v); ok {
		base, err2 := toIndex(args[1])
		if err2 != nil {
			err = err2
		} else {
			n, err = parseInt(s, base)
		}
	} else {
		n, err = Int(v)
	}
	if err == nil {
		return n, nil
	}
	if !isKind(err, "TypeError", "ValueError") {
		return nil, err
	}
	// "3.7"|int is 3: the text is converted to a float first.
	f, err := parseFloat(v)
	if err == nil {
		n, err = floatToInt(f)
	}
	if err == nil {
		return n, nil
	}
	if isKind(err, "TypeError", "ValueError", "OverflowError") {
		return args[0], nil
	}
	return nil, err
}

// filterFloat implements Jinja's float. It returns the default if Python's float() would raise.
func filterFloat(_ *Run, v any, a Args) (any, error) {
	args, err := a.Bind("do_float", []string{"default"}, 0.0)
	if err != nil {
		return nil, err
	}
	f, err := parseFloat(v)
	if isKind(err, "TypeError", "ValueError") {
		return args[0], nil
	}
	return f, err
}

// roundNumber implements Python's round(v, n): halves go to the even neighbour, for integers with a negative n as
// well. n is clamped, since beyond 400 digits a float does not change.
func roundNumber(v any, n int) (any, error) {
	if n > 400 || n < -400 {
		n = max(min(n, 400), -400)
	}
	f, ok := v.(float64)
	if !ok {
		if !isNumber(v) {
			if u, undef := v.(*Undefined); undef {
				return nil, u.noMethod("__round__", "type %s doesn't define __round__ method")
			}
			return nil, typeError("type %s doesn't define __round__ method", shortType(v))
		}
		if n >= 0 {
			return signedNumber(false, v)
		}
		// to the nearest multiple of 10**-n, halves to even
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-n)), nil)
		q, m := new(big.Int), new(big.Int)
		q.DivMod(toBig(v), unit, m)
		twice := new(big.Int).Lsh(m, 1)
		if c := twice.Cmp(unit); c > 0 || c == 0 && q.Bit(0) == 1 {
			q.Add(q, big.NewInt(1))
		}
		return pyobj.Int(q.Mul(q, unit)), nil
	}
	// Infinity and NaN are not changed.
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return f, nil
	}
	if n >= 0 {
		return pytext.Round(f, n), nil
	}
	// For digits before the decimal point, the number is scaled, rounded half to even, and scaled back.
	p := math.Pow(10, float64(-n))
	return math.RoundToEven(f/p) * p, nil
}

func filterRound(_ *Run, v any, a Args) (any, error) {
	var list [2]any
	args, err := a.bind(list[:], "do_round", []string{"precision", "method"}, int64(0), "common")
	if err != nil {
		return nil, err
	}
	if args[0] == nil && args[1] == "common" { // round(v, None) returns an integer
		x, err := roundNumber(v, 0)
		if f, ok := x.(float64); ok {
			return floatToInt(f)
		}
		return x, err
	}
	n, err := toIndex(args[0])
	if err != nil {
		return nil, err
	}
	switch args[1] {
	case "common":
		return roundNumber(v, n)
	case "ceil", "floor":
		// ceil and floor scale by 10**precision as Jinja does, with its rounding errors.
		power, err := numberOp(tPow, int64(10), args[0])
		if err != nil {
			return nil, err
		}
		if !isNumber(v) {
			return nil, unsupportedOperands(tMul, v, power)
		}
		x, err := numberOp(tMul, v, power)
		if err != nil {
			return nil, err
		}
		if f, ok := x.(float64); ok {
			if args[1] == "ceil" {
				f = math.Ceil(f)
			} else {
				f = math.Floor(f)
			}
			if x, err = floatToInt(f); err != nil {
				return nil, err
			}
		}
		return numberOp(tDiv, x, power)
	}
	return nil, raise("FilterArgumentError", "method must be common, ceil or floor")
}

// filterSum implements Jinja's sum. start decides the type: lists can be summed, but texts cannot.
func filterSum(r *Run, v any, a Args) (any, error) {
	a.Before++ // Python also counts the environment
	args, err := a.Bind("sync_do_sum", []string{"attribute", "start"}, nil, int64(0))
	if err != nil {
		return nil, err
	}
	items, err := Collect(v)
	if err != nil {
		return nil, err
	}
	get := r.attrGetter(args[0], nil, nil)
	total := args[1]
	if _, text := isText(total); text {
		return nil, typeError("sum() can't sum strings [use ''.join(seq) instead]")
	}
	for _, x := range items {
		if x, err = get(x); err != nil {
			return nil, err
		}
		if total, err = r.binaryOp(tAdd, total, x); err != nil {
			return nil, err
		}
	}
	return total, nil
}
