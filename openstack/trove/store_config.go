package trove

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// storeConfig is the mapping store of an object store.
type storeConfig struct {
	words map[string]string
	size  int64 // segment_size, 0 if it is not given
}

// readStore reads the mapping store, which may have type and these keys.
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

// Bounds of segments: S3 has no smaller and Swift no larger ones.
const (
	minSegment = 5 << 20
	maxSegment = 5 << 30
)

func (c storeConfig) segment(def int64) int64 { return cmp.Or(c.size, def) }

// orDefault is the name of a domain.
func (c storeConfig) orDefault(key string) string { return cmp.Or(c.words[key], "Default") }

// storeTimeout is how long a store may take to answer once it has a request. A stream itself has no bound: it ends with
// the job.
const storeTimeout = 2 * time.Minute

// httpClient trusts the certificates of the host, or those of the file cacert.
func (c storeConfig) httpClient(g *guest) (http.Client, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = storeTimeout
	t.DisableKeepAlives = true // a call is short; nothing closes what it leaves
	if file := c.words["cacert"]; file != "" {
		b, err := os.ReadFile(g.c.Path(file))
		if err != nil {
			return http.Client{}, modules.Errorf("cannot read cacert: %v", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(b) {
			return http.Client{}, modules.Errorf("cannot read cacert: %s has no certificates", file)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return http.Client{Transport: t}, nil
}
