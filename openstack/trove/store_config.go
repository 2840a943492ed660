package trove

import (
	"cmp"
	"crypto/tls"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/certpool"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// storeConfig is the mapping "store" for an object store.
type storeConfig struct {
	words map[string]string
	size  int64 // segment_size; 0 means not set
}

// readStore reads the mapping "store", which may have "type" and the given keys.
func (g *guest) readStore(keys ...string) (c storeConfig, err error) {
	c.words = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(g.store)) {
		switch v := g.store[key]; {
		case key == "type":
		case !slices.Contains(keys, key):
			return c, modules.Errorf("cannot use the store: there is no %s", key)
		case key == "segment_size":
			if c.size, err = modules.ToInt(v); err != nil || c.size < minSegment || c.size > maxSegment {
				return c, modules.Errorf("cannot use the store: segment_size must be from %d to %d bytes, not %s", minSegment,
					int64(maxSegment), pytext.Repr(v))
			}
		default:
			c.words[key] = pytext.Str(v)
		}
	}
	return c, nil
}

// Limits of segments: the minimum is S3's, the maximum Swift's.
const (
	minSegment = 5 << 20
	maxSegment = 5 << 30
)

func (c storeConfig) segment(def int64) int64 { return cmp.Or(c.size, def) }

// orDefault returns the name of a domain; the default is "Default".
func (c storeConfig) orDefault(key string) string { return cmp.Or(c.words[key], "Default") }

// storeTimeout is how long a store may take to answer a request. A stream itself has no time limit; it ends with the
// job.
const storeTimeout = 2 * time.Minute

// httpClient returns a client that trusts the host's certificates, or those in the file cacert.
func (c storeConfig) httpClient(g *guest) (http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = storeTimeout
	t.DisableKeepAlives = true // a call is short, and nothing would close idle connections
	if file := c.words["cacert"]; file != "" {
		pool, err := certpool.Read(g.c.Path(file))
		if err != nil {
			return http.Client{}, modules.Errorf("cannot read cacert: %v", err)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return http.Client{Transport: t}, nil
}
