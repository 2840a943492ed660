package pki

import (
	"crypto/cipher"
	"crypto/sha1"
	"encoding/binary"
)

const oidRC2of128, oidRC2of40 = "1.2.840.113549.1.12.1.5", "1.2.840.113549.1.12.1.6"

// rc2PBE returns the cipher of the certificates in old bundles. It is only used to read them.
func rc2PBE(passphrase, salt []byte, iterations, size int) (cipher.Block, []byte, error) {
	secret := bmp(passphrase)
	return newRC2(kdf(sha1.New, secret, salt, iterations, 1, size)), kdf(sha1.New, secret, salt, iterations, 2, 8), nil
}

// rc2 implements RC2 (RFC 2268) with an effective key length equal to the key's length. It can only decrypt.
type rc2 [64]uint16

// pi is RFC 2268's table of digits of π. It is a string so that it needs no initialization.
const pi = "\xd9\x78\xf9\xc4\x19\xdd\xb5\xed\x28\xe9\xfd\x79\x4a\xa0\xd8\x9d\xc6\x7e\x37\x83\x2b\x76\x53\x8e\x62\x4c\x64\x88\x44\x8b\xfb\xa2" +
	"\x17\x9a\x59\xf5\x87\xb3\x4f\x13\x61\x45\x6d\x8d\x09\x81\x7d\x32\xbd\x8f\x40\xeb\x86\xb7\x7b\x0b\xf0\x95\x21\x22\x5c\x6b\x4e\x82" +
	"\x54\xd6\x65\x93\xce\x60\xb2\x1c\x73\x56\xc0\x14\xa7\x8c\xf1\xdc\x12\x75\xca\x1f\x3b\xbe\xe4\xd1\x42\x3d\xd4\x30\xa3\x3c\xb6\x26" +
	"\x6f\xbf\x0e\xda\x46\x69\x07\x57\x27\xf2\x1d\x9b\xbc\x94\x43\x03\xf8\x11\xc7\xf6\x90\xef\x3e\xe7\x06\xc3\xd5\x2f\xc8\x66\x1e\xd7" +
	"\x08\xe8\xea\xde\x80\x52\xee\xf7\x84\xaa\x72\xac\x35\x4d\x6a\x2a\x96\x1a\xd2\x71\x5a\x15\x49\x74\x4b\x9f\xd0\x5e\x04\x18\xa4\xec" +
	"\xc2\xe0\x41\x6e\x0f\x51\xcb\xcc\x24\x91\xaf\x50\xa1\xf4\x70\x39\x99\x7c\x3a\x85\x23\xb8\xb4\x7a\xfc\x02\x36\x5b\x25\x55\x97\x31" +
	"\x2d\x5d\xfa\x98\xe3\x8a\x92\xae\x05\xdf\x29\x10\x67\x6c\xba\xc9\xd3\x00\xe6\xcf\xe1\x9e\xa8\x2c\x63\x16\x01\x3f\x58\xe2\x89\xa9" +
	"\x0d\x38\x34\x1b\xab\x33\xff\xb0\xbb\x48\x0c\x5f\xb9\xb1\xcd\x2e\xc5\xf3\xdb\x47\xe5\xa5\x9c\x77\x0a\xa6\x20\x68\xfe\x7f\xc1\xad"

func newRC2(key []byte) *rc2 {
	var l [128]byte
	n := copy(l[:], key)
	for i := n; i < 128; i++ {
		l[i] = pi[l[i-1]+l[i-n]]
	}
	l[128-n] = pi[l[128-n]]
	for i := 127 - n; i >= 0; i-- {
		l[i] = pi[l[i+1]^l[i+n]]
	}
	var c rc2
	for i := range c {
		c[i] = binary.LittleEndian.Uint16(l[2*i:])
	}
	return &c
}

func (c *rc2) BlockSize() int { return 8 }

func (c *rc2) Encrypt(dst, src []byte) { panic("pki: RC2 is only read") }

func (c *rc2) Decrypt(dst, src []byte) {
	var r [4]uint16
	for i := range r {
		r[i] = binary.LittleEndian.Uint16(src[2*i:])
	}
	at := 63
	mix := func() {
		for i := 3; i >= 0; i-- {
			shift := [...]int{1, 2, 3, 5}[i]
			r[i] = r[i]>>shift | r[i]<<(16-shift)
			r[i] -= c[at] + (r[(i+3)%4] & r[(i+2)%4]) + (^r[(i+3)%4] & r[(i+1)%4])
			at--
		}
	}
	mash := func() {
		for i := 3; i >= 0; i-- {
			r[i] -= c[r[(i+3)%4]&63]
		}
	}
	for round := range 16 {
		if round == 5 || round == 11 {
			mash()
		}
		mix()
	}
	for i := range r {
		binary.LittleEndian.PutUint16(dst[2*i:], r[i])
	}
}
