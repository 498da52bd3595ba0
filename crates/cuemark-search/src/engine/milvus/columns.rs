//! Columns of rows, as Milvus sends and takes them.

use milvus::proto::schema::field_data::Field;
use milvus::proto::schema::scalar_field::Data;
use milvus::proto::schema::vector_field::Data as VectorData;
use milvus::proto::schema::{
    BoolArray, DataType, DoubleArray, FieldData, FloatArray, JsonArray, LongArray, ScalarField, StringArray,
    VectorField,
};

fn column(name: &str, kind: DataType, field: Field) -> FieldData {
    FieldData { r#type: kind as i32, field_name: name.to_owned(), field: Some(field), ..FieldData::default() }
}

fn scalars(name: &str, kind: DataType, data: Data) -> FieldData {
    column(name, kind, Field::Scalars(ScalarField { data: Some(data), ..ScalarField::default() }))
}

pub(super) fn longs(name: &str, data: Vec<i64>) -> FieldData {
    scalars(name, DataType::Int64, Data::LongData(LongArray { data }))
}

pub(super) fn doubles(name: &str, data: Vec<f64>) -> FieldData {
    scalars(name, DataType::Double, Data::DoubleData(DoubleArray { data }))
}

pub(super) fn bools(name: &str, data: Vec<bool>) -> FieldData {
    scalars(name, DataType::Bool, Data::BoolData(BoolArray { data }))
}

pub(super) fn texts(name: &str, data: Vec<String>) -> FieldData {
    scalars(name, DataType::VarChar, Data::StringData(StringArray { data }))
}

pub(super) fn jsons(name: &str, data: Vec<Vec<u8>>) -> FieldData {
    scalars(name, DataType::Json, Data::JsonData(JsonArray { data }))
}

/// Rows of `width` numbers.
pub(super) fn vectors(name: &str, width: usize, data: Vec<f32>) -> FieldData {
    let numbers = VectorData::FloatVector(FloatArray { data });
    let field = VectorField { dim: width as i64, data: Some(numbers), ..VectorField::default() };
    column(name, DataType::FloatVector, Field::Vectors(field))
}

/// The columns of an answer, by name. Every reader says which column is missing or of another kind.
pub(super) struct Columns(pub(super) Vec<FieldData>);

impl Columns {
    fn scalars(&self, name: &str) -> Result<&Data, String> {
        match self.0.iter().find(|column| column.field_name == name).and_then(|column| column.field.as_ref()) {
            Some(Field::Scalars(ScalarField { data: Some(data), .. })) => Ok(data),
            _ => Err(format!("an answer has no column `{name}`")),
        }
    }

    pub(super) fn longs(&self, name: &str) -> Result<&[i64], String> {
        match self.scalars(name)? {
            Data::LongData(array) => Ok(&array.data),
            _ => Err(format!("column `{name}` holds no whole numbers")),
        }
    }

    pub(super) fn doubles(&self, name: &str) -> Result<&[f64], String> {
        match self.scalars(name)? {
            Data::DoubleData(array) => Ok(&array.data),
            _ => Err(format!("column `{name}` holds no numbers")),
        }
    }

    pub(super) fn texts(&self, name: &str) -> Result<&[String], String> {
        match self.scalars(name)? {
            Data::StringData(array) => Ok(&array.data),
            _ => Err(format!("column `{name}` holds no text")),
        }
    }

    /// Rows of `width` numbers, one behind the other; as many as there are rows in all.
    pub(super) fn vectors(&self, name: &str, width: usize, rows: usize) -> Result<&[f32], String> {
        let column = self.0.iter().find(|column| column.field_name == name);
        match column.and_then(|column| column.field.as_ref()) {
            Some(Field::Vectors(VectorField { data: Some(VectorData::FloatVector(array)), .. }))
                if array.data.len() == rows * width =>
            {
                Ok(&array.data)
            }
            // An answer without rows may come without numbers.
            None if rows == 0 => Ok(&[]),
            _ => Err(format!("column `{name}` does not hold {rows} vectors of {width} numbers")),
        }
    }

    /// Whether the answer has no rows: it may then have no columns either.
    pub(super) fn is_empty(&self) -> bool {
        let empty = |column: &FieldData| match &column.field {
            Some(Field::Scalars(ScalarField { data: Some(data), .. })) => match data {
                Data::LongData(array) => array.data.is_empty(),
                Data::DoubleData(array) => array.data.is_empty(),
                Data::StringData(array) => array.data.is_empty(),
                _ => false,
            },
            Some(Field::Scalars(ScalarField { data: None, .. })) | None => true,
            _ => false,
        };
        self.0.iter().all(empty) || self.0.iter().any(empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_read_as_they_were_made_and_others_are_refused() {
        let columns = Columns(vec![
            longs("n", vec![1, 2]),
            doubles("x", vec![0.5, 1.5]),
            texts("t", vec!["a".to_owned(), "b".to_owned()]),
            vectors("v", 2, vec![1.0, 2.0, 3.0, 4.0]),
        ]);
        assert_eq!(columns.longs("n"), Ok(&[1, 2][..]));
        assert_eq!(columns.doubles("x"), Ok(&[0.5, 1.5][..]));
        assert_eq!(columns.texts("t").unwrap()[1], "b");
        assert_eq!(columns.vectors("v", 2, 2).unwrap().len(), 4);
        assert!(columns.vectors("v", 3, 2).is_err());
        assert!(columns.longs("x").is_err());
        assert!(columns.texts("nowhere").is_err());
        assert!(!columns.is_empty());
        assert!(Columns(vec![]).is_empty());
    }
}
