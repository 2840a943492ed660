package heat

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pyjson"
)

// maxFile limits a metadata file in bytes.
const maxFile = 32 << 20

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s exceeds %d bytes", path, limit)
	}
	return b, err
}

// heatLocal reads the files written at the first boot by heat-cfntools' part handler for cloud-init.
func (c *collectors) heatLocal() ([]Document, error) {
	all := map[string]any{}
	for _, path := range c.conf.All("heat_local", "path", "/var/lib/heat-cfntools/cfn-init-data") {
		b, err := readLimited(c.paths.at(path), maxFile)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		m, err := parseMap(b, path)
		if err != nil {
			c.log.Info("Local metadata is not used", "err", err)
			continue
		}
		for k, v := range m {
			all[k] = v
		}
	}
	if len(all) == 0 {
		return nil, errNotConfigured
	}
	return []Document{{"heat_local", all}}, nil
}

// local reads the files in directories, sorted by name. It refuses files that other users may write to.
func (c *collectors) local() ([]Document, error) {
	var docs []Document
	for _, dir := range c.conf.All("local", "path", "/var/lib/os-collect-config/local-data") {
		dir = c.paths.at(dir)
		info, err := os.Stat(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = safe(dir, info)
		}
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			info, err := os.Stat(path)
			if err != nil || info.IsDir() || strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if info.Mode().Perm()&0o002 != 0 {
				return nil, fmt.Errorf("%s is writable by everybody: its metadata is not used", path)
			}
			b, err := readLimited(path, maxFile)
			if err != nil {
				return nil, err
			}
			v, err := pyjson.Parse(b)
			if err != nil {
				return nil, fmt.Errorf("%s is not JSON: %w", path, err)
			}
			docs = append(docs, Document{e.Name(), v})
		}
	}
	if len(docs) == 0 {
		return nil, errNotConfigured
	}
	slices.SortStableFunc(docs, func(a, b Document) int { return strings.Compare(a.Name, b.Name) })
	return docs, nil
}

func safe(path string, info fs.FileInfo) error {
	if uid, ok := owner(info); ok && uid != os.Getuid() {
		return fmt.Errorf("%s belongs to another user: its metadata is not used", path)
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("%s is writable by everybody: its metadata is not used", path)
	}
	return nil
}

// ec2 reads the cloud's metadata service once, and then uses its cache. It is used only if the configuration contains
// a URL for it, or the collector: Heat stores nothing there, and a host outside of a cloud would wait for it.
func (c *collectors) ec2(ctx context.Context) ([]Document, error) {
	address := c.conf.Get("ec2", "metadata_url", "")
	if address == "" && len(c.conf.All("DEFAULT", "collectors")) > 0 {
		address = "http://169.254.169.254/latest/meta-data"
	}
	if address == "" {
		return nil, errNotConfigured
	}
	if c.have("ec2") {
		return nil, errUnchanged
	}
	v, err := c.walkEC2(ctx, strings.TrimRight(address, "/")+"/", 0)
	if err != nil {
		return nil, err
	}
	return []Document{{"ec2", v}}, nil
}

// maxEC2 limits the depth and, squared, the width of a metadata service's tree.
const maxEC2 = 16

func (c *collectors) walkEC2(ctx context.Context, address string, depth int) (any, error) {
	_, body, err := c.web("ec2").do(ctx, request{method: http.MethodGet, url: address})
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(address, "/") {
		return string(body), nil
	}
	if depth >= maxEC2 {
		return nil, fmt.Errorf("the metadata service nests more than %d deep", maxEC2)
	}
	tree := map[string]any{}
	for i, name := range strings.Split(string(body), "\n") {
		if i >= maxEC2*maxEC2 {
			return nil, fmt.Errorf("the metadata service lists more than %d names", maxEC2*maxEC2)
		}
		if key, _, ok := strings.Cut(name, "="); ok {
			name = key + "/"
		}
		if name == "" {
			continue
		}
		if tree[strings.TrimSuffix(name, "/")], err = c.walkEC2(ctx, address+name, depth+1); err != nil {
			return nil, err
		}
	}
	return tree, nil
}
