package cloud

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
)

// A Part is one part of user data: its type, for example text/x-shellscript, and its content.
type Part struct {
	Kind, Name string
	Content    []byte
}

// Parts returns the parts of user data as cloud-init sees them.
func Parts(data []byte) ([]Part, error) {
	kinds := map[string]string{"#cloud-config": "text/cloud-config", "#!": "text/x-shellscript"}
	for prefix, kind := range kinds {
		if bytes.HasPrefix(data, []byte(prefix)) {
			return []Part{{Kind: kind, Content: data}}, nil
		}
	}
	msg, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("user data of an unknown kind: %w", err)
	}
	kind, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil, fmt.Errorf("user data of the kind %q: %w", kind, errors.Join(err, errors.ErrUnsupported))
	}
	var out []Part
	for r := multipart.NewReader(msg.Body, params["boundary"]); ; {
		p, err := r.NextRawPart()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read user data: %w", err)
		}
		content, err := io.ReadAll(p)
		if err == nil && strings.EqualFold(p.Header.Get("Content-Transfer-Encoding"), "base64") {
			content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(content)), ""))
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read user data: %w", err)
		}
		kind, _, _ := mime.ParseMediaType(p.Header.Get("Content-Type"))
		out = append(out, Part{Kind: kind, Name: p.FileName(), Content: content})
	}
}

// SaltMinion holds the options of cloud-init's module salt_minion.
type SaltMinion struct {
	Conf       map[string]any `json:"conf"`
	Grains     map[string]any `json:"grains"`
	PublicKey  string         `json:"public_key"`
	PrivateKey string         `json:"private_key"`
}

// FindSaltMinion returns the salt_minion part of user data, or nil if it is missing. The master writes its
// cloud-config as JSON, which is also YAML; other cloud-config is the user's own and is ignored.
func FindSaltMinion(parts []Part) (*SaltMinion, error) {
	for _, p := range parts {
		_, body, _ := bytes.Cut(p.Content, []byte("\n"))
		if p.Kind != "text/cloud-config" || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
			continue
		}
		var v struct {
			SaltMinion *SaltMinion `json:"salt_minion"`
		}
		if err := json.Unmarshal(body, &v); err != nil {
			return nil, fmt.Errorf("cannot read cloud-config: %w", err)
		}
		if v.SaltMinion != nil {
			return v.SaltMinion, nil
		}
	}
	return nil, nil
}

// Files returns the files that cloud-init's salt_minion writes, as content by path.
func (s SaltMinion) Files() (map[string][]byte, error) {
	conf, err := json.MarshalIndent(s.Conf, "", "  ")
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"/etc/salt/minion": conf}
	if s.Grains != nil {
		if out["/etc/salt/grains"], err = json.MarshalIndent(s.Grains, "", "  "); err != nil {
			return nil, err
		}
	}
	if s.PrivateKey != "" {
		out["/etc/salt/pki/minion/minion.pem"], out["/etc/salt/pki/minion/minion.pub"] = []byte(s.PrivateKey), []byte(s.PublicKey)
	}
	return out, nil
}
