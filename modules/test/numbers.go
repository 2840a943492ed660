package test

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"math/big"
	"math/bits"

	"github.com/brine-salt/brine/internal/hashname"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

func fib(ctx context.Context, c *modules.Call) (any, error) {
	num, err := c.Int("num")
	if err != nil {
		return nil, err
	}
	if num < 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "Negative number is not allowed!"}
	}
	begin := c.Now()
	if num < 2 {
		return pyobj.Tuple{num, c.Now().Sub(begin).Seconds()}, nil
	}
	var prev, curr uint64 = 0, 1
	for i := int64(1); i < num; i++ {
		next, over := bits.Add64(prev, curr, 0)
		if over != 0 {
			return nil, &modules.PythonError{Type: "OverflowError", Msg: "Integer value out of range"}
		}
		prev, curr = curr, next
	}
	if curr>>63 == 0 {
		return pyobj.Tuple{int64(curr), c.Now().Sub(begin).Seconds()}, nil
	}
	return pyobj.Tuple{curr, c.Now().Sub(begin).Seconds()}, nil
}

// collatz keeps Python's types: the first division makes the number a float, which it stays.
func collatz(ctx context.Context, c *modules.Call) (any, error) {
	n, err := c.Int("start")
	if err != nil {
		return nil, err
	}
	if n < 1 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: "The number must be positive, not " + pytext.Str(n)}
	}
	begin := c.Now()
	steps, float := []any{}, false
	for n != 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if float {
			steps = append(steps, float64(n))
		} else {
			steps = append(steps, n)
		}
		if n%2 == 0 {
			n, float = n/2, true
			continue
		}
		if n > (1<<63-2)/3 {
			return nil, &modules.PythonError{Type: "OverflowError", Msg: "Integer value out of range"}
		}
		n = n*3 + 1
	}
	return pyobj.Tuple{steps, c.Now().Sub(begin).Seconds()}, nil
}

func randStr(ctx context.Context, c *modules.Call) (any, error) { return randomHash(ctx, c) }

func randomHash(_ context.Context, c *modules.Call) (any, error) {
	size, err := c.Int("size")
	if err != nil {
		return nil, err
	}
	if size < 0 {
		return nil, &modules.PythonError{Type: "ValueError", Msg: emptyRange(size)}
	}
	name := c.Str("hash_type")
	if name == "" {
		if name, _ = c.Opt("hash_type").(string); name == "" {
			name = "sha256"
		}
	}
	h := hashname.New(name)
	if h == nil {
		return nil, &modules.PythonError{Type: "AttributeError", Msg: "module 'hashlib' has no attribute '" + name + "'"}
	}
	n, err := crand.Int(crand.Reader, new(big.Int).Add(big.NewInt(size), big.NewInt(1)))
	if err != nil {
		return nil, modules.Errorf("cannot get random numbers: %v", err)
	}
	h.Write([]byte(n.String()))
	return hex.EncodeToString(h.Sum(nil)), nil
}
