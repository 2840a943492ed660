package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
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

// room keeps the content of open orders within Limits.Total. A tenant may have as much as remains free
// afterwards (of 4 GiB the first tenant 2, the second 1), so that some room is left for the orders of others.
type room struct {
	mu    sync.Mutex      // guards sizes
	sizes map[string]size // by prefix; those of the last sizeLife, others may be missing
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
// ErrFull. Content without a tenant has no share: it may use all that is free.
func (r *room) take(ctx context.Context, from store.Contents, prefix string, total int64, bytes int) error {
	if total <= 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all, err := r.measure(ctx, from, "")
	if err != nil {
		return err
	}
	var own size
	if prefix != "" {
		if own, err = r.measure(ctx, from, prefix); err != nil {
			return err
		}
	}
	n := int64(bytes)
	// guard: content-of-one-tenant TestContentIsShared instead: all.bytes+n > total
	if own.bytes+n > total-all.bytes {
		return fmt.Errorf("%w: %d bytes", ErrFull, all.bytes)
	}
	all.bytes += n
	r.sizes[""] = all
	if own.bytes += n; prefix != "" {
		r.sizes[prefix] = own
	}
	return nil
}

// measure returns the size of the content under keys with a prefix. A refused order costs no question to the store
// each time: what ended orders leave is free within sizeLife.
func (r *room) measure(ctx context.Context, from store.Contents, prefix string) (size, error) {
	s := r.sizes[prefix]
	// guard: content-of-one-tenant TestFullContentIsMeasuredOnce
	if time.Since(s.at) <= sizeLife {
		return s, nil
	}
	n, err := from.ContentSize(ctx, prefix)
	if err != nil {
		return size{}, err
	}
	if r.sizes == nil {
		r.sizes = make(map[string]size)
	}
	maps.DeleteFunc(r.sizes, func(_ string, s size) bool { return time.Since(s.at) > sizeLife })
	s = size{n, time.Now()}
	r.sizes[prefix] = s
	return s, nil
}
