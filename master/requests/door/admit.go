package door

import "context"

const (
	// A sealed request of largeRequest bytes or more waits for its turn. largeBytes limits the total size of
	// those that have a turn. Opened, packed and not yet stored, each takes several times its size; ten
	// thousand returns of 10 KB would take a gigabyte.
	largeRequest = 4 << 10
	largeBytes   = 16 << 20
)

// admitLarge waits until a sealed request of n bytes may be opened, in order of arrival. Its connection is not
// read meanwhile. Call done once: when the request turns out not to be a return, since only returns wait for
// the store, or when it is answered.
func (d *Door) admitLarge(ctx context.Context, n int) (done func(), err error) {
	if n < largeRequest {
		return func() {}, nil
	}
	weight := int64(min(n, largeBytes))
	if err := d.turns.Acquire(ctx, weight); err != nil {
		return nil, err
	}
	return func() { d.turns.Release(weight) }, nil
}
