package helper // want `package helper: the word "helper" fits anything` `file helper: the word "helper" fits anything`
