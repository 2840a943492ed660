package door

import "context"

const (
	// largeRequest is from how many bytes a sealed request waits for its turn, and largeBytes how many those may have
	// together that have it: opened, packed and not yet stored, each takes several times its size. Ten thousand returns
	// of 10 KB would take a gigabyte.
	largeRequest = 4 << 10
	largeBytes   = 16 << 20
)

// admitLarge waits until a sealed request of n bytes may be opened, in the order in which they came; its connection is
// not read meanwhile. done is called once, when the request is known to be no return, which waits for nothing but the
// store, or is answered.
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
