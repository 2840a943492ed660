package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Chain is the state of [Verify] after the files read so far. The zero value is the start.
type Chain struct {
	Lines int    // lines in the chain
	Torn  int    // incomplete lines among them
	First string // hash of the line before the first of them; "" when it was the first of all
	Last  string // hash of the last line
	begun bool
}

// Verify reads a file of the chain, which continues those read before, oldest first. Lines from before chaining
// was enabled may come first. The error names the line that is out of place.
func (c *Chain) Verify(r io.Reader) error {
	b := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := readLine(b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := c.line(line); err != nil {
			return fmt.Errorf("line %d %w", n, err)
		}
	}
}

func (c *Chain) line(line []byte) error {
	var e struct {
		Prev *string `json:"prev"`
	}
	bad := json.Unmarshal(line, &e) != nil
	switch {
	case len(line) == 0: // the file was truncated after an incomplete line
		return nil
	case bad:
		if c.begun {
			c.Torn++
		}
	case e.Prev == nil:
		if c.begun {
			return errors.New("is not part of the chain")
		}
	case !c.begun:
		if c.Last != "" && *e.Prev != c.Last {
			return errors.New("does not follow the line before it")
		}
		c.begun, c.First = true, *e.Prev
	case *e.Prev == "":
		return errors.New("starts a new chain")
	case *e.Prev != c.Last:
		return errors.New("does not follow the line before it")
	}
	c.Last = sum(line)
	if c.begun {
		c.Lines++
	}
	return nil
}

// readLine reads a line of at most maxLine bytes, without its line break.
func readLine(b *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := b.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("it has more than %d bytes", maxLine)
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
