package signed

import (
	"encoding/binary"
	"io"
	"math/bits"
)

// Constants of BLAKE2b (RFC 7693): the initial state and the order of words in each round.
var (
	start = [8]uint64{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
		0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179}
	order = [10][16]byte{
		{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
		{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
		{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
		{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
		{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}}
)

// blockSize is the block size of BLAKE2b in bytes.
const blockSize = 128

// blake2b returns the BLAKE2b-512 hash of the data from a reader. The package of golang.org/x/crypto is faster, but
// would add 50 KB to every program.
func blake2b(r io.Reader) ([]byte, error) {
	h := start
	h[0] ^= 0x01010040 // no key, 64 bytes of output
	buf := make([]byte, 64<<10+blockSize)
	var length uint64
	kept := 0 // bytes of buf not hashed yet: the last block is marked, so at least one block is kept
	for {
		n, err := r.Read(buf[kept : len(buf)-blockSize])
		kept += n
		taken := 0
		for ; kept-taken > blockSize; taken += blockSize {
			length += blockSize
			compress(&h, buf[taken:], length, false)
		}
		kept = copy(buf, buf[taken:kept])
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	clear(buf[kept:blockSize])
	compress(&h, buf, length+uint64(kept), true)
	sum := make([]byte, 0, 64)
	for _, w := range h {
		sum = binary.LittleEndian.AppendUint64(sum, w)
	}
	return sum, nil
}

// compress mixes a block into the hash. length counts all bytes up to the end of the block.
func compress(h *[8]uint64, block []byte, length uint64, last bool) {
	var m, v [16]uint64
	for i := range m {
		m[i] = binary.LittleEndian.Uint64(block[8*i:])
	}
	copy(v[:], h[:])
	copy(v[8:], start[:])
	v[12] ^= length
	if last {
		v[14] = ^v[14]
	}
	for round := range 12 {
		s := &order[round%10]
		for i := range 8 {
			// four columns, then four diagonals
			a, b, c, d := i%4, 4+(i+i/4)%4, 8+(i+i/4*2)%4, 12+(i+i/4*3)%4
			v[a] += v[b] + m[s[2*i]]
			v[d] = bits.RotateLeft64(v[d]^v[a], -32)
			v[c] += v[d]
			v[b] = bits.RotateLeft64(v[b]^v[c], -24)
			v[a] += v[b] + m[s[2*i+1]]
			v[d] = bits.RotateLeft64(v[d]^v[a], -16)
			v[c] += v[d]
			v[b] = bits.RotateLeft64(v[b]^v[c], -63)
		}
	}
	for i := range h {
		h[i] ^= v[i] ^ v[i+8]
	}
}
