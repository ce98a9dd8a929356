package rest

import (
	"testing"

	"github.com/readback-go/readback/connectors/httpsend"
)

// FuzzXML: what is read of an answer in XML has the types that the paths say, and no answer makes it panic.
func FuzzXML(f *testing.F) {
	for _, text := range []string{
		"<items><item id='1'><name xml:lang='en'>a</name></item></items>", "<items><item/><item><name/></item></items>", "<items/>",
		"<a:items xmlns:a='x'><![CDATA[<]]>&#65;&amp;<a:item/></a:items>", "<!DOCTYPE a [<!ENTITY b 'c'>]><items>&b;</items>",
		"<?xml version='1.0' encoding='latin1'?><items/>", "\ufeff<items></items >\n<!-- -->", "<items><item></items>", "<:a/>", "<html/>",
	} {
		f.Add([]byte(text))
	}
	s := &shape{}
	item := s.into("items").into("item")
	item.list = true
	item.into("name")
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := s.decode(httpsend.Answer{Body: text})
		if err != nil {
			return
		}
		items, named := doc.(map[string]any)["items"].(map[string]any)
		if !named {
			return // another element, or nil
		}
		list, there := items["item"]
		all, isList := list.([]any)
		if there && !isList {
			t.Fatalf("item is %v, want a list", list)
		}
		for _, one := range all {
			o, isObject := one.(map[string]any)
			if !isObject && one != nil {
				t.Fatalf("an item is %v, want an object", one)
			}
			if _, isList := o["name"].([]any); isList {
				t.Fatalf("a name is %v, want one", o["name"])
			}
		}
	})
}
