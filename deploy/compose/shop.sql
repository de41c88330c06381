CREATE DATABASE shop;
CREATE TABLE shop.item (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL);
INSERT INTO shop.item (name) VALUES ('apple'), ('pear'), ('plum');
