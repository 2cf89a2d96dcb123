package words // want `file dns_utils: the word "utils" fits anything`
