package crypt

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math/big"
)

// SignX931 applies the private key to msg with ANSI X9.31 padding and no hash, as OpenSSL's RSA_private_encrypt
// does with padding 5 (salt/utils/rsax931.py). msg has up to k-2 bytes, where k is the length of the modulus in
// bytes. The result is always the same for a message and is cached.
func (k *PrivateKey) SignX931(msg []byte) ([]byte, error) {
	if sig := k.x931.get(string(msg)); sig != nil {
		return sig, nil
	}
	em, err := padX931(msg, k.key.Size())
	if err != nil {
		return nil, err
	}
	m := new(big.Int).SetBytes(em)
	n := k.key.N
	if m.Cmp(n) >= 0 {
		return nil, errors.New("cannot sign with X9.31: message does not fit the key")
	}
	s, err := k.blindExp(m)
	if err != nil {
		return nil, fmt.Errorf("cannot sign with X9.31: %w", err)
	}
	if other := new(big.Int).Sub(n, s); other.Cmp(s) < 0 {
		s = other
	}
	sig := s.FillBytes(make([]byte, k.key.Size()))
	k.x931.put(string(msg), sig)
	return sig, nil
}

// blindExp computes m^d mod n. It blinds the computation, so that its duration reveals nothing about d. It checks the
// result, so that a faulty computation is never returned as a signature.
func (k *PrivateKey) blindExp(m *big.Int) (*big.Int, error) {
	n, e := k.key.N, big.NewInt(int64(k.key.E))
	for range 64 {
		r, err := rand.Int(rand.Reader, n)
		if err != nil {
			return nil, err
		}
		inv := new(big.Int).ModInverse(r, n)
		if r.Cmp(one) <= 0 || inv == nil {
			continue
		}
		blind := new(big.Int).Exp(r, e, n)
		blind.Mul(blind, m).Mod(blind, n)
		s := new(big.Int).Exp(blind, k.key.D, n)
		s.Mul(s, inv).Mod(s, n)
		if new(big.Int).Exp(s, e, n).Cmp(m) != 0 {
			return nil, errors.New("computation failed its check")
		}
		return s, nil
	}
	return nil, errors.New("no blinding factor found")
}

func padX931(msg []byte, size int) ([]byte, error) {
	fill := size - len(msg) - 2
	if fill < 0 {
		return nil, fmt.Errorf("cannot sign with X9.31: %d bytes exceed %d", len(msg), size-2)
	}
	em := make([]byte, 0, size)
	if fill == 0 {
		em = append(em, 0x6a)
	} else {
		em = append(em, 0x6b)
		for range fill - 1 {
			em = append(em, 0xbb)
		}
		em = append(em, 0xba)
	}
	return append(append(em, msg...), 0xcc), nil
}

// recovered is the last X9.31 message that a public key recovered. Every request of a minion carries the same one,
// and comparing a hash costs a hundredth of the arithmetic.
type recovered struct {
	sum [sha256.Size]byte
	msg []byte
}

// maxRecovered is the longest message that is cached.
const maxRecovered = 64

// RecoverX931 returns the message in an X9.31 signature. The error is [ErrSignature] if the private half of this key
// did not make it. The last result is cached.
func (p *PublicKey) RecoverX931(sig []byte) ([]byte, error) {
	if size := p.key.Size(); len(sig) != size {
		return nil, fmt.Errorf("%w: %d bytes, the key has %d", ErrSignature, len(sig), size)
	}
	sum := sha256.Sum256(sig)
	if last := p.last.Load(); last != nil && subtle.ConstantTimeCompare(last.sum[:], sum[:]) == 1 {
		return bytes.Clone(last.msg), nil
	}
	msg, err := p.recoverX931(sig)
	if err == nil && len(msg) <= maxRecovered {
		p.last.Store(&recovered{sum, bytes.Clone(msg)})
	}
	return msg, err
}

func (p *PublicKey) recoverX931(sig []byte) ([]byte, error) {
	s := new(big.Int).SetBytes(sig)
	if s.Cmp(p.key.N) >= 0 {
		return nil, ErrSignature
	}
	r := s.Exp(s, big.NewInt(int64(p.key.E)), p.key.N)
	if r.Bit(0) != 0 || r.Bit(1) != 0 || r.Bit(2) != 1 || r.Bit(3) != 1 {
		r.Sub(p.key.N, r) // r mod 16 is not 12: the signer used n - s
	}
	return unpadX931(r.FillBytes(make([]byte, p.key.Size())))
}

func unpadX931(em []byte) ([]byte, error) {
	last := len(em) - 1
	if em[last] != 0xcc {
		return nil, ErrSignature
	}
	switch em[0] {
	case 0x6a:
		return em[1:last], nil
	case 0x6b:
		for i := 1; i < last; i++ {
			switch em[i] {
			case 0xbb:
			case 0xba:
				return em[i+1 : last], nil
			default:
				return nil, ErrSignature
			}
		}
	}
	return nil, ErrSignature
}
