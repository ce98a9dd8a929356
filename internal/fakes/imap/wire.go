package imap

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// command is one command of a client, read whole.
type command struct {
	tag  string
	name string // in capitals, "UID STORE" as one
	// texts and literals alternate: text, literal, text, …
	texts    []string
	literals [][]byte
}

var literalForm = regexp.MustCompile(`\{(\d+)(\+?)\}$`)

// readCommand reads a command and requests its literals.
func readCommand(r *bufio.Reader, w io.Writer) (*command, error) {
	c := &command{}
	for {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		m := literalForm.FindStringSubmatch(line)
		if m == nil {
			c.texts = append(c.texts, line)
			break
		}
		if m[2] == "" {
			if _, err := io.WriteString(w, "+ go ahead\r\n"); err != nil {
				return nil, err
			}
		}
		literal, err := readLiteral(r, m[1])
		if err != nil {
			return nil, err
		}
		c.texts = append(c.texts, strings.TrimSuffix(line, m[0]))
		c.literals = append(c.literals, literal)
	}
	words := strings.Fields(c.texts[0])
	if len(words) < 2 {
		return nil, fmt.Errorf("no command in %q", c.texts[0])
	}
	c.tag, c.name = words[0], strings.ToUpper(words[1])
	if c.name == "UID" && len(words) > 2 {
		c.name += " " + strings.ToUpper(words[2])
	}
	return c, nil
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// maxLiteral stops a client that announces more than fits into memory.
const maxLiteral = 64 << 20

func readLiteral(r *bufio.Reader, digits string) ([]byte, error) {
	n, err := strconv.Atoi(digits)
	if err != nil || n > maxLiteral {
		return nil, fmt.Errorf("a literal of %s bytes", digits)
	}
	literal := make([]byte, n)
	_, err = io.ReadFull(r, literal)
	return literal, err
}

// answer is the server's response to one command: everything before the tagged line, and the
// tagged line.
type answer struct {
	untagged []string // with line ends and literals
	tagged   string   // "OK done", without the tag
}

func (a answer) ok() bool { return strings.HasPrefix(a.tagged, "OK") }

// link is a connection to the server without faults.
type link struct {
	io.ReadWriteCloser
	r *bufio.Reader
}

// do sends a command, literals one by one, and reads the answer. more returns the client's
// replies to challenges (AUTHENTICATE).
func (l *link) do(c *command, more func(challenge string) (string, error)) (answer, error) {
	var a answer
	for i, literal := range c.literals {
		if _, err := fmt.Fprintf(l, "%s{%d}\r\n", c.texts[i], len(literal)); err != nil {
			return a, err
		}
		if goOn, err := l.read(c.tag, &a); err != nil || goOn == "" {
			return a, err // refused before the literal
		}
		if _, err := l.Write(literal); err != nil {
			return a, err
		}
	}
	if _, err := io.WriteString(l, c.texts[len(c.texts)-1]+"\r\n"); err != nil {
		return a, err
	}
	for {
		challenge, err := l.read(c.tag, &a)
		if err != nil || challenge == "" {
			return a, err
		}
		answer, err := more(challenge)
		if err != nil {
			return a, err
		}
		if _, err := io.WriteString(l, answer+"\r\n"); err != nil {
			return a, err
		}
	}
}

// read reads to the next continuation request, which it returns, or to the
// tagged line.
func (l *link) read(tag string, a *answer) (string, error) {
	for {
		line, err := l.response()
		switch {
		case err != nil:
			return "", err
		case strings.HasPrefix(line, "+"):
			return line, nil
		case strings.HasPrefix(line, tag+" "):
			a.tagged = strings.TrimRight(strings.TrimPrefix(line, tag+" "), "\r\n")
			return "", nil
		}
		a.untagged = append(a.untagged, line)
	}
}

// response reads one response with all its literals.
func (l *link) response() (string, error) {
	var all strings.Builder
	for {
		line, err := l.r.ReadString('\n')
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		m := literalForm.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			return all.String(), nil
		}
		literal, err := readLiteral(l.r, m[1])
		if err != nil {
			return "", err
		}
		all.Write(literal)
	}
}
