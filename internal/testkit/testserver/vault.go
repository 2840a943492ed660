package testserver

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
)

// A server of Vault takes minutes to compile and is not packaged in Debian. So its responses were recorded, and cases
// receive these. A case begins with POST /tape/NAME, the name of its conversation. Its requests must be among the
// recorded ones, with the same bodies and tokens and in the same order. It may leave some out, and repeat requests
// that only read.
//
// To record, BRINE_VAULT is a program that serves Vault on loopback and prints its address and root token on one
// line, and BRINE_VAULT_TAPE is the file. If a conversation occurs more than once, the first is kept. The current
// recording is from Vault 1.14.0: its packages vault and http, with the secrets engine kv and authentication by
// approle, in memory.

//go:embed testdata/vault.jsonl
var vaultTape []byte

// rootToken replaces the root token in requests.
const rootToken = "root"

// said is a request with its response.
type said struct {
	Tape, Method, Path string
	Token              string `json:",omitempty"`
	Body               any    `json:",omitempty"`
	Status             int
	Answer             json.RawMessage `json:",omitempty"`
}

// same reports whether a request equals the recorded one.
func (s said) same(q said) bool {
	return s.Method == q.Method && s.Path == q.Path && s.Token == q.Token && bytes.Equal(s.body(), q.body())
}

// body returns the body of a request. Python's client sends {} for an empty body, which is treated as null.
func (s said) body() []byte {
	b, _ := json.Marshal(s.Body) // it was read as JSON
	if string(b) == "{}" {
		return []byte("null")
	}
	return b
}

// vaultServer plays or records. It handles one request at a time.
type vaultServer struct {
	mu    sync.Mutex
	tapes map[string][]said // by name: those played or recorded so far
	name  string
	at    int // index of the next request

	address, token string   // of the real server; "" in a replay
	record         *os.File // nil in a replay
}

// Vault starts a server with Vault's recorded responses, and returns its port.
func Vault(t testing.TB) (port string) {
	t.Helper()
	s := &vaultServer{tapes: map[string][]said{}}
	if program := os.Getenv("BRINE_VAULT"); program != "" {
		s.startReal(t, program)
	} else {
		lines := bufio.NewScanner(bytes.NewReader(vaultTape))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var one said
			if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
				t.Fatal(err)
			}
			s.tapes[one.Tape] = append(s.tapes[one.Tape], one)
		}
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL[strings.LastIndexByte(server.URL, ':')+1:]
}

func (s *vaultServer) startReal(t testing.TB, program string) {
	t.Helper()
	cmd := exec.Command(program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports that it was killed
	})
	if _, err := fmt.Fscan(out, &s.address, &s.token); err != nil {
		t.Fatal(err)
	}
	if s.record, err = os.OpenFile(os.Getenv("BRINE_VAULT_TAPE"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.record.Close() })
}

// ServeHTTP implements http.Handler.
func (s *vaultServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := strings.CutPrefix(r.URL.Path, "/tape/"); ok {
		_, again := s.tapes[name]
		if s.name, s.at = name, 0; s.record != nil {
			s.tapes[name] = nil
			if again {
				s.name = "" // it is recorded already
			}
		}
		return
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	q := said{Tape: s.name, Method: r.Method, Path: r.URL.Path, Token: r.Header.Get("X-Vault-Token")}
	if err == nil && len(text) > 0 {
		err = json.Unmarshal(text, &q.Body)
	}
	if err == nil {
		if s.record != nil {
			err = s.ask(r, text, &q)
		} else {
			err = s.play(&q)
		}
	}
	if err != nil {
		q.Status, q.Answer = 599, nil
		q.Answer, _ = json.Marshal(map[string]any{"errors": []string{err.Error()}}) // cannot fail for text
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(q.Status)
	_, _ = w.Write(q.Answer) // the client may have gone
}

// play returns the recorded response to a request: the next one or, for a request that only reads, the last one
// before.
func (s *vaultServer) play(q *said) error {
	tape := s.tapes[s.name]
	for i := s.at; i < len(tape); i++ {
		if tape[i].same(*q) {
			*q, s.at = tape[i], i+1
			return nil
		}
	}
	for i := s.at - 1; i >= 0 && (q.Method == http.MethodGet || q.Method == "LIST"); i-- {
		if tape[i].same(*q) {
			*q = tape[i]
			return nil
		}
	}
	return fmt.Errorf("tape %q has no %s %s %v after request %d", s.name, q.Method, q.Path, q.Body, s.at)
}

// ask forwards a request to the real server.
func (s *vaultServer) ask(r *http.Request, body []byte, q *said) error {
	req, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+path.Join(s.address, r.URL.EscapedPath()), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = r.Header.Clone()
	if q.Token == rootToken {
		req.Header.Set("X-Vault-Token", s.token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if q.Answer, err = io.ReadAll(resp.Body); err != nil {
		return err
	}
	q.Answer = bytes.ReplaceAll(bytes.TrimSpace(q.Answer), []byte(s.token), []byte(rootToken))
	q.Status = resp.StatusCode
	if s.name == "" {
		return nil
	}
	line, err := json.Marshal(q)
	if err == nil {
		_, err = s.record.Write(append(line, '\n'))
	}
	return err
}
