// Package pyrandom generates the same random numbers as Python's module random from the same seed (the Mersenne
// Twister MT19937). Minions use them to spread their work: a schedule that stock Salt spread must not move. The
// numbers are not suitable for secrets.
package pyrandom

import (
	"crypto/sha512"
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

const (
	size = 624
	mid  = 397
)

// Rand is a random number generator. It is not safe for concurrent use.
type Rand struct {
	state [size]uint32
	index int
}

// New returns a generator seeded like random.seed(v). v is a text, bytes, int, bool or float.
func New(v any) (*Rand, error) {
	n, err := seed(v)
	if err != nil {
		return nil, err
	}
	var words []uint32
	mask, word := big.NewInt(math.MaxUint32), new(big.Int)
	for n.Sign() > 0 {
		words = append(words, uint32(word.And(n, mask).Uint64()))
		n.Rsh(n, 32)
	}
	if words == nil {
		words = []uint32{0}
	}
	r := &Rand{}
	r.seedWords(words)
	return r, nil
}

// seed returns the number that random.seed uses for a value.
func seed(v any) (*big.Int, error) {
	switch v := v.(type) {
	case string:
		return textSeed([]byte(v)), nil
	case []byte:
		return textSeed(v), nil
	case bool:
		if v {
			return big.NewInt(1), nil
		}
		return new(big.Int), nil
	case int64:
		return new(big.Int).Abs(big.NewInt(v)), nil
	case uint64:
		return new(big.Int).SetUint64(v), nil
	case float64:
		return new(big.Int).SetUint64(uint64(hashFloat(v))), nil
	}
	return nil, fmt.Errorf("The only supported seed types are: None,\nint, float, str, bytes, and bytearray.")
}

func textSeed(b []byte) *big.Int {
	sum := sha512.Sum512(b)
	return new(big.Int).SetBytes(append(append([]byte{}, b...), sum[:]...))
}

// hashFloat implements Python's hash() of a float on 64-bit systems.
func hashFloat(f float64) int64 {
	const prime = 1<<61 - 1
	switch {
	case math.IsInf(f, 1):
		return 314159
	case math.IsInf(f, -1):
		return -314159
	case math.IsNaN(f):
		return 0
	}
	m, e := math.Frexp(math.Abs(f))
	var x uint64
	for m != 0 {
		x = x<<28&prime | x>>(61-28)
		m *= 1 << 28
		e -= 28
		y := uint64(m)
		m -= float64(y)
		if x += y; x >= prime {
			x -= prime
		}
	}
	shift := e % 61
	if e < 0 {
		shift = 61 - 1 - (-1-e)%61
	}
	x = x<<shift&prime | x>>(61-shift)
	h := int64(x)
	if f < 0 {
		h = -h
	}
	if h == -1 {
		h = -2
	}
	return h
}

func (r *Rand) seedOne(s uint32) {
	r.state[0] = s
	for i := 1; i < size; i++ {
		s = 1812433253*(s^s>>30) + uint32(i)
		r.state[i] = s
	}
	r.index = size
}

func (r *Rand) seedWords(key []uint32) {
	r.seedOne(19650218)
	i, j := 1, 0
	for range max(size, len(key)) {
		r.state[i] = (r.state[i] ^ (r.state[i-1]^r.state[i-1]>>30)*1664525) + key[j] + uint32(j)
		if i++; i >= size {
			r.state[0], i = r.state[size-1], 1
		}
		if j++; j >= len(key) {
			j = 0
		}
	}
	for range size - 1 {
		r.state[i] = (r.state[i] ^ (r.state[i-1]^r.state[i-1]>>30)*1566083941) - uint32(i)
		if i++; i >= size {
			r.state[0], i = r.state[size-1], 1
		}
	}
	r.state[0] = 0x80000000
}

func (r *Rand) next() uint32 {
	if r.index >= size {
		for i := range size {
			y := r.state[i]&0x80000000 | r.state[(i+1)%size]&0x7fffffff
			v := r.state[(i+mid)%size] ^ y>>1
			if y&1 != 0 {
				v ^= 0x9908b0df
			}
			r.state[i] = v
		}
		r.index = 0
	}
	y := r.state[r.index]
	r.index++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// bits returns k random bits, 1 to 64.
func (r *Rand) bits(k int) uint64 {
	if k <= 32 {
		return uint64(r.next() >> (32 - k))
	}
	low := uint64(r.next())
	return low | uint64(r.next()>>(64-k))<<32
}

// Below returns a random number from 0 to n-1; n must not be 0.
func (r *Rand) Below(n uint64) uint64 {
	k := bits.Len64(n)
	v := r.bits(k)
	for v >= n {
		v = r.bits(k)
	}
	return v
}

// Sample returns k random positions in a list of n, in the order of random.sample; k must be between 0 and n.
func (r *Rand) Sample(n, k int) []int {
	picked := make([]int, k)
	setSize := 21
	if k > 5 {
		setSize += int(math.Pow(4, math.Ceil(math.Log(float64(k*3))/math.Log(4))))
	}
	if n <= setSize {
		pool := make([]int, n)
		for i := range pool {
			pool[i] = i
		}
		for i := range k {
			j := r.Below(uint64(n - i))
			picked[i] = pool[j]
			pool[j] = pool[n-i-1]
		}
		return picked
	}
	seen := make(map[uint64]bool, k)
	for i := range k {
		j := r.Below(uint64(n))
		for seen[j] {
			j = r.Below(uint64(n))
		}
		seen[j] = true
		picked[i] = int(j)
	}
	return picked
}
