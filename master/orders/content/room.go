package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/brine-salt/brine/master/store"
)

// sizeLife is how long a measured size of stored content is used, plus what is stored here meanwhile.
const sizeLife = time.Second

// defaultTotal is the default of Limits.Total with a store on disk, in bytes, memoryTotal with one in memory.
const defaultTotal, memoryTotal = 4 << 30, 256 << 20

// DefaultTotal returns the default of Limits.Total in bytes.
func DefaultTotal(onDisk bool) int64 {
	if onDisk {
		return defaultTotal
	}
	return memoryTotal
}

// room keeps the content of open orders within Limits.Total, and each tenant's within half of it, so that one tenant
// cannot keep the orders of the others from carrying anything.
type room struct {
	mu    sync.Mutex // guards sizes
	sizes map[string]size
}

// size is the bytes of content whose key has a prefix.
type size struct {
	bytes int64
	at    time.Time // when the store was read
}

// prefixOf returns how keys of a tenant's content begin, "" for orders without a tenant.
func prefixOf(tenant string) string {
	if tenant == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(tenant))
	return hex.EncodeToString(sum[:16]) + "."
}

// take counts bytes that are about to be stored under a key with a tenant's prefix, or returns an error that wraps
// ErrFull.
func (r *room) take(ctx context.Context, from store.Contents, prefix string, total int64, bytes int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sizes == nil {
		r.sizes = make(map[string]size)
	}
	err := r.takeWithin(ctx, from, "", total, bytes)
	if err == nil && prefix != "" {
		// guard: content-of-one-tenant TestContentIsShared
		err = r.takeWithin(ctx, from, prefix, (total+1)/2, bytes)
	}
	return err
}

func (r *room) takeWithin(ctx context.Context, from store.Contents, prefix string, limit int64, bytes int) error {
	s := r.sizes[prefix]
	if time.Since(s.at) > sizeLife || s.bytes >= limit { // orders may have ended since
		n, err := from.ContentSize(ctx, prefix)
		if err != nil {
			return err
		}
		s = size{n, time.Now()}
	}
	if limit > 0 && s.bytes >= limit {
		return fmt.Errorf("%w: %d bytes", ErrFull, s.bytes)
	}
	s.bytes += int64(bytes)
	r.sizes[prefix] = s
	return nil
}
