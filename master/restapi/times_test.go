package restapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/brine-salt/brine/master"
	"github.com/brine-salt/brine/master/eauth"
	"github.com/brine-salt/brine/master/restapi"
	"github.com/brine-salt/brine/master/runner"
)

// pipes is a listener without a network.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

// TestTimes: the time limits for a request's head, its body, the next request and reading the answer are exact to
// the second. Jobs have their own.
func TestTimes(t *testing.T) {
	const run = `{"client": "runner", "username": "anna", "password": "x", "eauth": "auto", "fun": "test.%s"}`
	post := func(body string) string {
		return fmt.Sprintf("POST /run HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	answered := func(t *testing.T, c net.Conn, want string) {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.HasPrefix(string(body), want) {
			t.Fatalf("%d %.300s %v", resp.StatusCode, body, err)
		}
	}
	closed := func(t *testing.T, c net.Conn) {
		t.Helper()
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("the end is %q, %v", rest, err)
		}
	}
	for _, c := range []struct {
		name string
		talk func(t *testing.T, c net.Conn)
		want time.Duration
	}{
		{"nothing", closed, 10 * time.Second},
		{"half a head", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, "GET /login HTTP/1.1\r\nHost:")
			closed(t, c)
		}, 10 * time.Second},
		{"a head by and by", func(t *testing.T, c net.Conn) {
			var by sync.WaitGroup
			gone := make(chan struct{})
			defer by.Wait()
			by.Go(func() {
				for _, err := io.WriteString(c, "GET /login HTTP/1.1\r\n"); err == nil; _, err = io.WriteString(c, "X: y\r\n") {
					select {
					case <-gone:
						return
					case <-time.After(time.Second):
					}
				}
			})
			closed(t, c)
			close(gone)
		}, 10 * time.Second},
		{"half a body", func(t *testing.T, c net.Conn) {
			whole := post(fmt.Sprintf(run, "arg"))
			_, _ = io.WriteString(c, whole[:len(whole)-10])
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode < 400 {
				t.Error(resp, err)
			}
		}, 60 * time.Second},
		{"a body that nobody reads", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, "GET /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
			_, _ = io.ReadAll(c)
		}, 60 * time.Second},
		{"no second request", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, "GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
			answered(t, c, `{"return": "Please log in"`)
			closed(t, c)
		}, 2 * time.Minute},
		{"a long job", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, post(strings.Replace(fmt.Sprintf(run, "sleep"), "}", `, "s_time": 250}`, 1)))
			answered(t, c, `{"return": [true]}`)
		}, 250 * time.Second},
		{"a request after a long job", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, post(strings.Replace(fmt.Sprintf(run, "sleep"), "}", `, "s_time": 90}`, 1)))
			answered(t, c, `{"return": [true]}`)
			_, _ = io.WriteString(c, "GET /login HTTP/1.1\r\nHost: x\r\n\r\n")
			answered(t, c, `{"return": "Please log in"`)
			closed(t, c)
		}, 90*time.Second + 2*time.Minute},
		{"an answer that is not taken", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, post(strings.Replace(fmt.Sprintf(run, "arg"), "}", `, "arg": ["`+strings.Repeat("x", 500_000)+`"]}`, 1)))
			begin := time.Now()
			if _, err := io.ReadFull(c, make([]byte, 100_000)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(writeTime - time.Since(begin))
			synctest.Wait()
			if n, err := io.Copy(io.Discard, c); err != nil || n > 0 {
				t.Error(n, err)
			}
		}, writeTime},
		{"an answer that is taken slowly", func(t *testing.T, c net.Conn) {
			_, _ = io.WriteString(c, post(strings.Replace(fmt.Sprintf(run, "arg"), "}", `, "arg": ["`+strings.Repeat("x", 500_000)+`"]}`, 1)))
			for range 20 {
				if _, err := io.ReadFull(c, make([]byte, 24_000)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(9 * time.Second)
			}
			_, _ = io.CopyN(io.Discard, c, 20_000)
		}, 180 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, err := master.New(master.Options{Keys: master.KeyOptions{Size: 2048}})
				if err != nil {
					t.Fatal(err)
				}
				defer m.Close()
				auth, err := eauth.New(eauth.Options{Config: map[string]any{"auto": map[string]any{"anna": []any{"@runner"}}}})
				if err != nil {
					t.Fatal(err)
				}
				host := runner.Embedded(m, "m_master", nil, "", nil)
				rest, err := restapi.New(restapi.Options{Master: m, Auth: auth, Runner: runner.NewClient(host)})
				if err != nil {
					t.Fatal(err)
				}
				ln := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				server, ended := rest.HTTP(), make(chan error, 1)
				go func() { ended <- server.Serve(restapi.Limit(ln, 10, 10)) }()
				conn, begin := ln.dial(), time.Now()
				c.talk(t, conn)
				if d := time.Since(begin); d != c.want {
					t.Errorf("it took %s, not %s", d, c.want)
				}
				conn.Close()
				rest.Close()
				if err := server.Shutdown(context.Background()); err != nil {
					t.Error(err)
				}
				if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
					t.Error(err)
				}
			})
		})
	}
}

// writeTime is how long a client may take for a piece of an answer.
const writeTime = 30 * time.Second
