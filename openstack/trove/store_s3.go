package trove

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/brine-salt/brine/modules"
)

// s3 stores objects in buckets. Metadata is a separate object beside each one, since S3 cannot change the metadata of
// a large object.
type s3 struct {
	client  *minio.Client
	region  string
	segment uint64 // bytes, held in memory
}

// s3Segment is the size of parts. S3 allows 10,000 parts, so an object may have 160 GB. The part being sent is in
// memory.
const s3Segment = 16 << 20

func (g *guest) openS3() (store, error) {
	c, err := g.readStore("endpoint", "access_key", "secret_key", "region", "path_style", "segment_size", "cacert")
	if err != nil {
		return nil, err
	}
	s, err := newS3(g, c)
	if err != nil {
		return nil, modules.Errorf("cannot use the store s3: %v", err)
	}
	return s, nil
}

func newS3(g *guest, c storeConfig) (*s3, error) {
	at, err := url.Parse(c.words["endpoint"])
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, modules.Errorf("its endpoint must be an address with http or https, not %s", strconv.Quote(c.words["endpoint"]))
	}
	if c.words["access_key"] == "" || c.words["secret_key"] == "" {
		return nil, modules.Errorf("it has no access_key or no secret_key")
	}
	client, err := c.httpClient(g)
	if err != nil {
		return nil, err
	}
	o := &minio.Options{Creds: credentials.NewStaticV4(c.words["access_key"], c.words["secret_key"], ""), Secure: at.Scheme == "https",
		Region: c.words["region"], Transport: client.Transport, MaxRetries: 3}
	if c.words["path_style"] == "True" {
		o.BucketLookup = minio.BucketLookupPath
	}
	s := &s3{region: c.words["region"], segment: uint64(c.segment(s3Segment))}
	s.client, err = minio.New(at.Host, o)
	return s, err
}

// bucket returns the name of a container's bucket, because S3 does not allow underscores.
func bucket(container string) string { return strings.ReplaceAll(container, "_", "-") }

func (s *s3) wrap(what, name string, err error) error {
	if err == nil {
		return nil
	}
	if isMissing(err) {
		return fmt.Errorf("cannot %s %s: the store has no such object: %w", what, name, fs.ErrNotExist)
	}
	return modules.Errorf("cannot %s %s: %v", what, name, err)
}

func isMissing(err error) bool {
	code := minio.ToErrorResponse(err).Code
	return code == minio.NoSuchKey || code == minio.NoSuchBucket
}

func (s *s3) put(ctx context.Context, container, name string, r io.Reader, meta map[string]string) (string, error) {
	found, err := s.client.BucketExists(ctx, bucket(container))
	if err == nil && !found {
		err = s.client.MakeBucket(ctx, bucket(container), minio.MakeBucketOptions{Region: s.region})
	}
	if err != nil {
		return "", s.wrap("make the bucket", bucket(container), err)
	}
	sum := md5.New()
	if err := s.upload(ctx, container, name, io.TeeReader(r, sum), -1); err != nil {
		return "", s.wrap("store", name, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), s.annotate(ctx, container, name, meta)
}

// upload streams an object in parts, each with an MD5. A failed upload leaves nothing behind.
func (s *s3) upload(ctx context.Context, container, name string, r io.Reader, size int64) error {
	_, err := s.client.PutObject(ctx, bucket(container), name, r, size, minio.PutObjectOptions{PartSize: s.segment, NumThreads: 1,
		SendContentMd5: true, DisableContentSha256: true})
	return err
}

func (s *s3) annotate(ctx context.Context, container, name string, meta map[string]string) error {
	b, err := json.Marshal(meta)
	if err == nil {
		err = s.upload(ctx, container, name+metaEnd, bytes.NewReader(b), int64(len(b)))
	}
	return s.wrap("store the metadata of", name, err)
}

// maxMeta limits the size of an object's metadata.
const maxMeta = 1 << 20

func (s *s3) get(ctx context.Context, container, name string) (*object, error) {
	m, err := s.client.GetObject(ctx, bucket(container), name+metaEnd, minio.GetObjectOptions{})
	if err != nil {
		return nil, s.wrap("read", name, err)
	}
	defer m.Close()
	o := &object{meta: map[string]string{}}
	if err := json.NewDecoder(io.LimitReader(m, maxMeta)).Decode(&o.meta); err != nil {
		return nil, s.wrap("read the metadata of", name, err)
	}
	r, err := s.client.GetObject(ctx, bucket(container), name, minio.GetObjectOptions{})
	if err == nil {
		_, err = r.Stat() // GetObject alone sends no request
	}
	if err != nil {
		return nil, s.wrap("read", name, err)
	}
	o.ReadCloser = r
	return o, nil
}

func (s *s3) names(ctx context.Context, container, prefix string) ([]string, error) {
	var list []string
	for o := range s.client.ListObjects(ctx, bucket(container), minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		switch {
		case isMissing(o.Err):
			return nil, nil
		case o.Err != nil:
			return nil, s.wrap("list", bucket(container), o.Err)
		case !strings.HasSuffix(o.Key, metaEnd):
			list = append(list, o.Key)
		}
	}
	slices.Sort(list)
	return list, nil
}

func (s *s3) remove(ctx context.Context, container, name string) error {
	var errs error
	for _, n := range [...]string{name, name + metaEnd} {
		if err := s.client.RemoveObject(ctx, bucket(container), n, minio.RemoveObjectOptions{}); err != nil && !isMissing(err) {
			errs = errors.Join(errs, s.wrap("remove", n, err))
		}
	}
	return errs
}

func (s *s3) location(container, name string) string {
	return "s3://" + s.client.EndpointURL().Host + "/" + bucket(container) + "/" + name
}

func (s *s3) locate(location string) (container, name string, err error) {
	rest, ok := strings.CutPrefix(location, "s3://"+s.client.EndpointURL().Host+"/")
	container, name, found := strings.Cut(rest, "/")
	if !ok || !found || container == "" || name == "" {
		return "", "", modules.Errorf("cannot find the backup %s: it is not in the store s3://%s", strconv.Quote(location),
			s.client.EndpointURL().Host)
	}
	return container, name, nil
}

var _ store = (*s3)(nil)
