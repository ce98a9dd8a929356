package mcp

import (
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/readback-go/readback/internal/visible"
)

// maxBuild is how much of the name of a build is kept, in characters.
const maxBuild = 80

// Pin adds the digests of a build of the server to the text of a contract, beside those that it
// has; nothing else of the text changes. build is a comment, for people; it is the server's own text,
// and stays one line. The error wraps
// [ErrInvalid] and names the tool that the build lacks, or what of the text cannot be extended.
func Pin(text []byte, file, build string, tools []*sdk.Tool) ([]byte, error) {
	c, err := Load(text, file)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(text), "\n")
	begin := slices.Index(lines, "digests:")
	if begin < 0 {
		begin = slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "digests: #") })
	}
	if begin < 0 {
		return nil, fmt.Errorf("%w: %s: digests: want each tool on a line of its own", ErrInvalid, file)
	}
	for _, name := range c.Pins() {
		i := slices.IndexFunc(tools, func(t *sdk.Tool) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: the server has no tool %s", ErrInvalid, name)
		}
		sum, err := Digest(tools[i])
		if err != nil {
			return nil, err
		}
		if slices.Contains(c.digests[name], sum) {
			continue
		}
		at, end := digestOf(lines, begin, name)
		if at < 0 {
			return nil, fmt.Errorf("%w: %s: digests: want %s on a line of its own", ErrInvalid, file, name)
		}
		key, value, _ := strings.Cut(lines[at], ":")
		value = strings.TrimSpace(value)
		added := sum + " # " + visible.Clip(build, maxBuild)
		var put []string
		switch {
		case strings.HasPrefix(value, unpinned):
			put = []string{key + ": " + added}
		case value == "" || value[0] == '#':
			put = append(slices.Clone(lines[at:end]), "    - "+added)
		case value[0] == '[':
			return nil, fmt.Errorf("%w: %s: digests.%s: want each digest on a line of its own", ErrInvalid, file, name)
		default:
			put = []string{key + ":", "    - " + value, "    - " + added}
		}
		lines = slices.Replace(lines, at, end, put...)
	}
	pinned := []byte(strings.Join(lines, "\n"))
	_, err = Load(pinned, file)
	return pinned, err
}

// digestOf finds the lines of the digests of a tool; at is -1 where there are none.
func digestOf(lines []string, begin int, tool string) (at, end int) {
	at = -1
	for i := begin + 1; i < len(lines) && (lines[i] == "" || strings.ContainsAny(lines[i][:1], " #")); i++ {
		name, _, _ := strings.Cut(strings.TrimSpace(lines[i]), ":")
		if strings.Trim(name, `"'`) == tool {
			at, end = i, i+1
		} else if at >= 0 && i == end && strings.HasPrefix(strings.TrimSpace(lines[i]), "- ") {
			end++
		}
	}
	return at, end
}
